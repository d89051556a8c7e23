// What comes before the cases: the verdict, demands, totals, charts, changes since the baseline, causes of failures.

function section(id, title, ...children) {
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), ...children);
}

function scrolled(label, ...children) {
  return el("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": label }, ...children);
}

function heading({ head, report }) {
  const { good, text, details } = head.verdict;
  const facts = [
    report.started_at.replace(/^(.{10})T(.{5}).*(Z|[+]00:00)$/, "$1 $2 UTC"),
    report.batch !== null && `batch ${report.batch}`,
    report.timing && `took ${milliseconds(report.timing.took_ms)}`,
    `exit code ${report.exit_code}`,
    `Workbench ${report.workbench}`,
  ];
  const suites = Object.values(head.suites);
  return el(
    "header",
    { class: `verdict ${good === null ? "" : good ? "passed" : "failed"}` },
    el("p", { class: "kicker" }, suites.slice(0, 6).join(" · "), suites.length > 6 && ` and ${suites.length - 6} more`),
    el("h1", null, good !== null && el("span", { class: "sign", "aria-hidden": "true" }, good ? "✓" : "✗"), el("span", null, text)),
    details.map((detail) => el("p", { class: "detail" }, detail)),
    el("p", { class: "quiet" }, facts.filter(Boolean).join(" · ")),
    themeButton(),
  );
}

function themeButton() {
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const button = el("button", { type: "button", class: "theme", title: "light or dark" });
  const show = () => button.replaceChildren(isDark() ? "☀ light" : "☾ dark");
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    show();
  });
  show();
  return button;
}

// The tools that were called with invalid arguments, or how many calls there are.
function invalidTools({ tools, checked }) {
  const invalid = tools.filter((tool) => tool.valid < tool.checked);
  return invalid.map((tool) => `${tool.tool} ${whole(tool.valid)} of ${whole(tool.checked)}`).join(", ") || `of ${counted(checked, "call")}`;
}

function figures({ report }) {
  const { totals, timing } = report;
  const tiles = [
    ["runs", whole(totals.runs), report.forks ? `and ${counted(report.forks, "fork")}` : ""],
    ["pass rate", totals.pass_rate === null ? NOTHING : percent(totals.pass_rate), "of graded runs"],
    ["mean score", totals.mean_score === null ? NOTHING : score(totals.mean_score), ""],
    totals.valid_arguments?.tools.length && ["valid arguments", totals.valid_arguments.rate === null ? "unknown" : percent(totals.valid_arguments.rate), invalidTools(totals.valid_arguments)],
    ["latency p50", totals.latency ? milliseconds(totals.latency.p50_ms) : NOTHING, totals.latency ? `p95 ${milliseconds(totals.latency.p95_ms)}, max ${milliseconds(totals.latency.max_ms)}` : ""],
    ["tokens", totals.usage ? whole(totals.usage.input_tokens + totals.usage.output_tokens) : NOTHING, totals.usage ? `${whole(totals.usage.output_tokens)} of them out` : ""],
    ["cost", totals.cost_usd === null ? "unknown" : dollars(totals.cost_usd), totals.runs_of_unknown_cost ? `${counted(totals.runs_of_unknown_cost, "run")} unknown` : ""],
    totals.judging.asked && ["judges asked", whole(totals.judging.asked), totals.judging.cost_usd === null ? "" : dollars(totals.judging.cost_usd)],
    timing?.cases_a_minute && ["cases a minute", figure(Number(decimals(timing.cases_a_minute, 1))), ""],
  ];
  const counts = STATUSES.map((status) => [STATUS[status], report.totals[STATUS[status].total]]);
  const all = totals.runs || 1;
  const bar = el("div", { class: "shares", role: "img", "aria-label": counts.filter(([, count]) => count).map(([status, count]) => `${count} ${status.counted}`).join(", ") });
  for (const [status, count] of counts) {
    if (!count) continue;
    const part = el("span", { class: status.role, title: `${count} ${status.counted}` }, `${status.sign} ${whole(count)}`);
    part.style.flexGrow = String(count / all);
    bar.append(part);
  }
  return el(
    "section",
    { class: "figures", "aria-label": "Totals" },
    bar,
    el("dl", null, tiles.filter(Boolean).map(([name, value, note]) => el("div", null, el("dt", null, name), el("dd", null, value), note && el("dd", { class: "note" }, note)))),
  );
}

function demands({ head, report }) {
  const whose = (each) => (head.models.length > 1 ? (each.model === null ? " with all models" : ` with ${each.model}`) : "");
  const name = (suite) => head.suites[suite] ?? suite;
  const gates = report.gates.map((gate) => ({
    met: gate.met,
    text: `${gate.suite === null ? "--min-score" : `gate of ${name(gate.suite)}`}${whose(gate)}: ${gate.measure} ${gate.reached === null ? "unknown, because nothing was graded" : reached(gate.reached, gate.minimum)}, ${gate.minimum} required`,
  }));
  const subject = (each) => `${each.name} of ${name(each.suite)}${whose(each)}`;
  const how = (each) => `${each.of}${each.tags.length ? `, tagged ${each.tags.join(" or ")}` : ""}, ${counted(each.count, "run")}`;
  const ofAggregates = report.aggregates.flatMap((each) =>
    each.gates.map((gate) => ({
      met: gate.met,
      text: `${subject(each)}: ${gate.statistic} ${gate.reached === null ? "unknown" : reached(gate.reached, gate.threshold)}, ${gate.at_most ? "at most" : gate.strictly ? "above" : "at least"} ${gate.threshold} required (${how(each)})`,
    })),
  );
  const statistics = (each) => [...Object.entries(each.statistics)].map(([statistic, value]) => `${statistic} ${value === null ? NOTHING : each.unit === "usd" ? dollars(value) : figure(value)}`).join(", ");
  const asked = [...gates, ...ofAggregates].sort((one, other) => Number(one.met) - Number(other.met));
  if (!asked.length && !report.aggregates.length) return null;
  const line = ({ met, text }) => el("li", { class: met ? "passed" : "failed" }, el("strong", null, met ? "✓ met" : "✗ missed"), " ", text);
  return section(
    "demands",
    asked.length ? "Demands" : "Aggregates",
    el(
      "div",
      { class: "card demands" },
      el("ul", null, asked.map(line)),
      report.aggregates.length > 0 && el("details", { open: !asked.length }, el("summary", null, counted(report.aggregates.length, "aggregate")), el("ul", null, report.aggregates.map((each) => el("li", null, `${subject(each)}: ${statistics(each)} (${how(each)})`)))),
    ),
  );
}

// With as many decimals as tell it from what was demanded.
function reached(value, demanded) {
  for (let digits = 2; digits < 10; digits += 1) {
    const text = decimals(value, digits);
    if (Math.sign(Number(text) - demanded) === Math.sign(value - demanded)) return text;
  }
  return decimals(value);
}

// The statuses that have a column: whose runs were judged, or should have been.
const SHOWN = Object.values(STATUS).filter((status) => status.role !== "muted");

function models({ head, cases }) {
  const k = Math.max(0, ...head.totals.map((each) => each.passing.length));
  const repeats = k > 1;
  const titles = ["model", "cases", ...SHOWN.map((status) => `${status.sign} ${status.word}`), "pass rate", "95% interval", "valid arguments", "score", "95% of score", "p50", "p95", "tokens", "cost", ...(repeats ? [`pass@${k}`, `pass^${k}`] : [])];
  const passing = (each, name) => {
    const found = each.passing.find((one) => one.k === k);
    return found ? percent(found[name]) : NOTHING;
  };
  // A number that does not rest on all cases says on how many.
  const rests = (count) => (head.models.length > 1 && count < cases.length ? ` (${counted(count, "case")})` : "");
  const row = (each) =>
    el(
      "tr",
      null,
      el("th", { scope: "row" }, each.model),
      [
        whole(each.cases),
        ...SHOWN.map((status) => (each[status.total] ? whole(each[status.total]) : "0")),
        `${percent(each.pass_rate)}${rests(each.graded)}`,
        each.interval ? `${percent(each.interval.low)} to ${percent(each.interval.high)}` : NOTHING,
        each.valid_arguments?.tools.length ? (each.valid_arguments.rate === null ? "unknown" : percent(each.valid_arguments.rate)) : NOTHING,
        each.mean_score === null ? NOTHING : `${score(each.mean_score)}${rests(each.graded)}`,
        each.score_interval ? `${score(each.score_interval.low)} to ${score(each.score_interval.high)}` : NOTHING,
        each.latency ? `${milliseconds(each.latency.p50_ms)}${rests(each.graded)}` : NOTHING,
        each.latency ? `${milliseconds(each.latency.p95_ms)}${rests(each.graded)}` : NOTHING,
        each.input_tokens === null ? NOTHING : `${whole(each.input_tokens + (each.output_tokens ?? 0))}${rests(each.cases)}`,
        `${dollars(each.cost_usd)}${each.runs_of_unknown_cost && each.cost_usd !== null ? " +?" : ""}`,
        ...(repeats ? [passing(each, "at_least_one"), passing(each, "all_of_them")] : []),
      ].map((text) => el("td", null, text)),
    );
  const tests = head.pairs.flatMap((pair) => [pair.sentence, pair.score_sentence, pair.arguments_sentence].filter(Boolean));
  return section(
    "models",
    head.models.length > 1 ? "Models" : "Model",
    scrolled("Totals of each model", el("table", { class: "totals" }, el("thead", null, el("tr", null, titles.map((title) => el("th", { scope: "col" }, title)))), el("tbody", null, head.totals.map(row)))),
    tests.length > 0 && el("ul", { class: "tests" }, tests.map((sentence) => el("li", null, sentence))),
  );
}

function charts({ head, facts }) {
  const still = document.getElementById("figures");
  const drawn = [passRates(head.totals), latencies(head.totals, facts), ...still.children].filter(Boolean);
  still.remove();
  return drawn.length ? el("section", { class: "charts", "aria-label": "Charts" }, drawn) : null;
}

const CHANGES = { broke: "✗ broke", gone: "✗ gone", errored: "▲ in error", fixed: "✓ fixed" };

function sinceBaseline({ head, report, cases }, openCase) {
  const { baseline } = report;
  if (!baseline) return null;
  const places = new Map(cases.map((each) => [JSON.stringify([each.suite, each.case_id]), each]));
  const groups = new Map();
  for (const change of baseline.changes) groups.set(change.kind, [...(groups.get(change.kind) ?? []), change]);
  const line = (change) => {
    const found = places.get(JSON.stringify([change.suite, change.case_id]));
    const at = change.after && found ? found.byModel.findIndex((cell) => cell?.model === change.model) : -1;
    const title = at >= 0 ? el("button", { type: "button", class: "link", onclick: () => openCase(found, at) }, change.case_name) : el("span", null, change.case_name);
    return el("li", null, title, " ", el("span", { class: "quiet" }, change.model), " ", change.sentence);
  };
  const most = 12;
  const lists = [...groups].map(([kind, changes]) =>
    el(
      "div",
      null,
      el("h3", { class: kind === "fixed" ? "passed" : CHANGES[kind] ? "failed" : "" }, `${CHANGES[kind] ?? kind}: ${whole(changes.length)}`),
      el("ul", null, changes.slice(0, most).map(line)),
      changes.length > most && el("details", null, el("summary", null, `${whole(changes.length - most)} more`), el("ul", null, changes.slice(most).map(line))),
    ),
  );
  const named = baseline.name === null ? `batch ${baseline.batch}` : `${baseline.name} (batch ${baseline.batch})`;
  const isOnly = head.kind === "changes";
  return section(
    "baseline",
    isOnly ? "What changed" : "Since the baseline",
    el(
      "div",
      { class: "card" },
      !isOnly && el("p", { class: baseline.regressed ? "failed" : "passed" }, el("strong", null, baseline.regressed ? "✗ regression " : "✓ no regression "), `since ${named}: ${counted(baseline.compared, "case")} graded in both, ${whole(baseline.as_before)} as before`),
      lists,
      [...baseline.tests.flatMap((test) => [test.sentence, test.score_sentence]), ...baseline.notes].filter(Boolean).map((note) => el("p", { class: "quiet" }, note)),
    ),
  );
}

function causes({ head, report }, filterBy) {
  const { causes: groups, confusion } = report.failures;
  if (!groups.length) return null;
  const most = Math.max(...groups.map((group) => group.runs.length));
  const line = (group) => {
    const bar = el("span", { class: "fill", "aria-hidden": "true" });
    bar.style.inlineSize = `${(group.runs.length / most) * 100}%`;
    const subjects = group.subjects.map((each) => `${each.tool}${each.argument === null ? "" : `.${each.argument}`}${each.instead === null ? "" : ` → ${each.instead}`} ${each.count}×`);
    return el(
      "li",
      null,
      el("button", { type: "button", class: "cause", onclick: () => filterBy(group.cause), title: "show only the cases that failed so" }, el("strong", null, group.cause), " ", el("span", null, counted(group.runs.length, "run"), group.main.length < group.runs.length && `, the main cause of ${whole(group.main.length)}`), bar),
      el("p", { class: "advice" }, group.advice, "."),
      subjects.length > 0 && el("p", { class: "quiet" }, subjects.slice(0, 4).join(", "), subjects.length > 4 && `, and ${counted(subjects.length - 4, "other")}`),
    );
  };
  const mixed = confusion.filter((each) => each.expected !== each.called).sort((one, other) => other.count - one.count);
  return section(
    "causes",
    head.kind === "changes" ? "Why runs of both batches failed" : "Why runs failed",
    el("ol", { class: "causes" }, groups.map(line)),
    mixed.length > 0 &&
      el("details", { class: "card" }, el("summary", null, `Tools that were called for others: ${whole(mixed.length)}`), scrolled("Expected and called tools", el("table", null, el("thead", null, el("tr", null, ["expected", "called", "times"].map((title) => el("th", { scope: "col" }, title)))), el("tbody", null, mixed.map((each) => el("tr", null, el("td", null, el("code", null, each.expected ?? "not expected")), el("td", null, el("code", null, each.called ?? "no call")), el("td", null, whole(each.count)))))))),
  );
}

const MOST_ERRORS = 12;

// Why runs ended in an error, equal reasons together.
function troubles({ head, facts }, filterBy) {
  const groups = new Map();
  for (const run of facts.filter((each) => each.status === "error")) {
    const key = JSON.stringify([run.model, run.reason]);
    groups.set(key, { ...run, count: (groups.get(key)?.count ?? 0) + 1 });
  }
  if (!groups.size) return null;
  const line = (run) => el("li", null, el("strong", null, "▲ "), el("span", { class: "quiet" }, `${head.models[run.model]}, ${counted(run.count, "run")}: `), oneLine(run.reason ?? "it is not known why"));
  const all = [...groups.values()].sort((one, other) => other.count - one.count);
  const rest = all.length - MOST_ERRORS;
  return section("errors", "Errors", el("ul", { class: "card demands" }, all.slice(0, MOST_ERRORS).map(line), rest > 0 && el("li", null, `and ${counted(rest, "other reason")}`), el("li", null, el("button", { type: "button", class: "link", onclick: filterBy }, "show their cases"))));
}
