// A case unfolded: its runs to choose from, and one of them in full, or two side by side.

class CaseView {
  constructor(data, each, { close, changed }) {
    this.data = data;
    this.each = each;
    this.changed = changed;
    this.run = null;
    this.beside = null;
    this.chosen = el("div", { class: "chosen" });
    this.content = el("div", { class: "content" });
    const closing = el("button", { type: "button", class: "close", onclick: close }, el("span", { "aria-hidden": "true" }, "×"), " close");
    this.element = el("article", { class: "unfold", "aria-label": each.case_name }, el("div", { class: "unfold-head" }, el("h3", null, each.case_name, " ", el("small", null, each.case_id)), closing), this.chosen, this.content);
  }

  async show(run, beside = null) {
    this.run = run;
    this.beside = beside;
    this.#drawChoice();
    this.changed();
    const shown = [run, beside].filter(Boolean).sort((one, other) => one.model - other.model || one.number - other.number);
    const wholes = await Promise.all(shown.map((each) => this.data.runs.get(each.number)));
    if (this.run !== run || this.beside !== beside) return;
    this.content.replaceChildren(beside ? pairView(...wholes) : runView(...wholes));
  }

  put(parameters) {
    parameters.set("run", this.run.number + 1);
    if (this.beside) parameters.set("beside", this.beside.number + 1);
  }

  #drawChoice() {
    const all = this.each.runs.flat();
    const groups = this.each.runs.map((runs, column) => {
      if (!runs.length) return null;
      const chips = runs.map((run) => el("button", { type: "button", class: `chip ${tone(run.status)}`, "aria-pressed": String(run === this.run), title: run.reason === null ? STATUS[run.status].word : `${STATUS[run.status].word}: ${oneLine(run.reason)}`, onclick: () => this.show(run, this.beside === run ? null : this.beside) }, STATUS[run.status].sign, " ", runName(run, runs)));
      return el("div", { class: "of-model" }, el("span", { class: "model" }, this.data.head.models[column]), chips);
    });
    const others = all.filter((run) => run !== this.run);
    const select = others.length > 0 && el("select", { "aria-label": "Side by side with" }, el("option", { value: "" }, "side by side with …"), others.map((run) => el("option", { value: run.number, selected: run === this.beside }, `${STATUS[run.status].sign} ${this.data.head.models[run.model]} ${runName(run, this.each.runs[run.model])}`)));
    if (select) select.addEventListener("change", () => this.show(this.run, others[select.selectedIndex - 1] ?? null));
    this.chosen.replaceChildren(...(select ? [...groups.filter(Boolean), select] : []));
  }
}

function runName(run, runs) {
  if (run.fork) return "↳ fork";
  return runs.length > 1 ? `#${run.repeat + 1}` : STATUS[run.status].word;
}

function runView(run) {
  const deciding = run.grades[0] ?? null;
  const story = el("div", { class: "story" });
  const graded = el("div", { class: "graded" });
  const show = (grade) => {
    graded.replaceChildren(...(grade ? [gradeView(grade, run.explanations[run.grades.indexOf(grade)])] : []));
    story.replaceChildren(...storyOf(run, grade));
  };
  show(deciding);
  return el(
    "div",
    { class: "run" },
    el("div", { class: "result" }, badge(run.status, run.score === null ? null : el("b", null, ` ${score(run.score)}`)), " ", el("span", null, run.error ?? decidingReason(run))),
    run.notices.map((notice) => el("p", { class: "notice" }, `▲ ${notice}`)),
    run.fork && el("p", { class: "notice" }, `↳ forked from a run of ${run.fork.model}, ${run.fork.answered === null ? "before" : "after"} the answer of round ${run.fork.round}`),
    run.touched && el("p", { class: "notice" }, "✎ changed by hand while it ran"),
    el(
      "div",
      { class: "columns" },
      el("div", { class: "aside" }, gradeTabs(run, show), graded, expectedView(run)),
      story,
      el("div", { class: "beside" }, stepsView(run), metricsView(run), judgementsView(run), measuresView(run), serversView(run)),
    ),
  );
}

// The issues that explain the others of their run.
const FIRST_KINDS = new Set(["endpoint fault", "cut off", "refused"]);

function decidingReason(run) {
  const [grade] = run.grades;
  if (!grade) return "";
  const issue = grade.issues.find((each) => FIRST_KINDS.has(each.kind)) ?? grade.issues.find((each) => each.decides) ?? grade.issues[0];
  return issue && run.status !== "passed" ? issueText(issue) : grade.reason;
}

// The five grades; the chosen one is the one whose verdicts are shown at calls and arguments.
function gradeTabs(run, show) {
  if (!run.grades.length) return null;
  const tabs = run.grades.map((grade, at) => {
    const applies = grade.verdict !== "not applicable";
    const status = grade.verdict === "error" ? "error" : applies ? (grade.status ?? grade.verdict) : null;
    const tab = el("button", { type: "button", class: `tab ${status ? tone(status) : "muted"}`, "aria-pressed": String(at === 0) }, el("span", null, grade.grader, at === 0 && el("small", null, " decides")), el("b", null, grade.verdict === "error" ? STATUS.error.sign : applies ? `${STATUS[status].sign} ${score(grade.score)}` : "n/a"));
    tab.addEventListener("click", () => {
      for (const other of tabs) other.setAttribute("aria-pressed", String(other === tab));
      show(grade);
    });
    return tab;
  });
  return el("div", { class: "tabs", role: "group", "aria-label": "Grades" }, tabs);
}

function gradeView(grade, { system, rule, formula, shortcut, verdict }) {
  const numbers = Object.entries(grade.numbers).map(([name, value]) => el("span", null, `${name.replaceAll("_", " ")} `, el("b", null, figure(value))));
  return el(
    "div",
    { class: "grade" },
    el("p", null, grade.reason),
    el("dl", { class: "formula" }, el("dt", null, rule), formula !== null && el("dd", null, formula), shortcut && el("dd", null, shortcut), verdict && el("dd", { class: "quiet" }, verdict), el("dd", { class: "quiet" }, `as ${system} grades`)),
    numbers.length > 0 && el("p", { class: "numbers" }, numbers),
    grade.issues.length > 0 && el("ul", { class: "issues" }, grade.issues.map((issue) => el("li", { class: issue.decides ? "decides" : "" }, issueText(issue), issue.decides && el("small", null, " this alone fails the case")))),
  );
}

function issueText(issue) {
  const place = [issue.tool, issue.argument].filter((part) => part !== null).join(".");
  const facts = [["expected", issue.expected], ["got", issue.got]].filter(([, what]) => what !== null).map(([word, what]) => `${word} ${what}`);
  const why = issue.kind === "wrong tool" && facts.length === 2 ? "" : ` (${issue.why})`;
  return [issue.kind, place, facts.join(", ")].filter(Boolean).join(": ") + why;
}

function expectedCall(call, sign = "") {
  const args = call.arguments;
  return el(
    "div",
    { class: "call expected" },
    el("div", { class: "call-head" }, sign && el("span", { class: "sign", "aria-hidden": "true" }, sign), el("code", { class: "tool" }, call.tool === "*" ? "any tool" : call.tool), el("small", null, call.place)),
    args === null ? el("p", { class: "quiet" }, "with any arguments") : args.length === 0 ? el("p", { class: "quiet" }, "no arguments listed") : el("dl", { class: "checks" }, args.map((each) => [el("dt", null, each.argument), el("dd", null, each.check)])),
    call.only_args && el("p", { class: "quiet" }, "and no others"),
    call.forbidden.length > 0 && el("p", { class: "quiet" }, `without ${call.forbidden.join(", ")}`),
  );
}

function expectedView(run) {
  const { calls, disallowed, no_calls, others, answer } = run.expectations;
  const lines = [
    no_calls && el("p", null, "no calls at all"),
    calls.map((call) => expectedCall(call)),
    others && el("p", null, others),
    disallowed.length > 0 && el("p", null, "disallowed:"),
    disallowed.map((call) => expectedCall(call)),
    answer.map((text) => el("p", null, "the answer: ", el("code", null, text))),
  ];
  const isEmpty = !no_calls && !calls.length && !others && !disallowed.length && !answer.length;
  return fold("expected", isEmpty ? "Expects nothing" : "Expected", isEmpty ? el("p", { class: "quiet" }, "The case expects nothing yet.") : lines, true);
}

function fold(kind, title, content, isOpen = false) {
  return el("details", { class: `fold ${kind}`, open: isOpen }, el("summary", null, title), content);
}

function stepsView(run) {
  if (!run.steps.length) return null;
  const line = (step) => el("li", { class: step.status ? tone(step.status) : "muted" }, `${step.status ? STATUS[step.status].sign : NOTHING} step ${step.step}  ${step.score === null ? NOTHING : score(step.score)}  ${step.why}`);
  return fold("steps", "Steps, each on its own", el("ul", null, run.steps.map(line)), true);
}

function metricsView(run) {
  if (!run.metrics.length) return null;
  const given = ({ number, scale }) => (number === null ? "" : ` (${number} on ${scale[0]}..${scale[1]})`);
  const line = (each) => el("li", null, el("strong", { class: each.holds ? "passed" : "failed" }, `${each.holds ? "✓" : "✗"} ${each.name} ${decimals(each.value, 2)}`), `${given(each)} expected ${each.expected}`, each.why && el("p", { class: "quiet" }, each.why));
  return fold("metrics", "Checks of the answer", el("ul", null, run.metrics.map(line)), true);
}

function judgementsView(run) {
  if (!run.judgements.length) return null;
  const line = (each) => el("li", null, el("strong", { class: each.holds ? "passed" : "failed" }, `${each.holds ? "✓ holds" : "✗ does not hold"}${each.scale ? ` (${each.number} on ${each.scale[0]}..${each.scale[1]})` : ""}`), ` ${each.criteria}`, el("p", { class: "quiet" }, `${each.model}: ${each.rationale}`), longText(each.value));
  return fold("judgements", `Judgements: ${run.judgements.length}`, el("ul", null, run.judgements.map(line)));
}

function measuresView(run) {
  const usages = run.rounds.map((round) => round.usage).filter(Boolean);
  const sum = (name) => usages.reduce((total, usage) => total + Number(usage[name]), 0);
  const retries = run.rounds.reduce((total, round) => total + round.retries, 0);
  const tokens = usages.length ? `${whole(sum("input_tokens"))} in${sum("cached_input_tokens") ? ` (${whole(sum("cached_input_tokens"))} cached)` : ""}, ${whole(sum("output_tokens"))} out${sum("reasoning_tokens") ? ` (${whole(sum("reasoning_tokens"))} reasoning)` : ""}` : NOTHING;
  const facts = [
    ["ended", run.finish ?? NOTHING],
    ["model's answers", milliseconds(Number(run.latency_ms) || null)],
    ["whole loop", milliseconds(Number(run.loop_ms) || null)],
    ["tokens", tokens],
    ["cost", dollars(run.cost_usd)],
    retries && ["retries", retries],
    Number(run.held_ms) && ["held", milliseconds(run.held_ms)],
    run.tools.length && ["tools offered", run.tools.join(", ")],
  ];
  return fold("measures", "Time, tokens, cost", el("dl", null, facts.filter(Boolean).map(([name, value]) => [el("dt", null, name), el("dd", null, value)])), true);
}

function serversView(run) {
  return run.server_outputs.map((output) => fold("server", `Last words of server ${output.server}`, [output.earlier > 0 && el("p", { class: "quiet" }, `${counted(output.earlier, "line")} before`), longText(output.lines.join("\n"))]));
}

// The conversation, one element for each thing that was said or done.
function storyOf(run, grade) {
  const pairings = new Map();
  for (const pairing of grade?.pairings ?? []) if (pairing.call !== null) pairings.set(Number(pairing.call), pairing);
  const missing = (grade?.pairings ?? []).filter((pairing) => pairing.call === null && pairing.expected_call !== null);
  let call = 0;
  let { system } = run;
  const parts = [said("system", "system prompt", system, true)];
  for (const message of run.messages) {
    parts.push(said(message.role, message.role === "tool" ? (message.is_error ? "tool result, an error" : "tool result") : message.role, message.content));
    for (const prior of message.calls) parts.push(el("div", { class: "said prior" }, el("small", { class: "who" }, "call before the request"), el("code", { class: "tool" }, prior.tool), longText(json(prior.arguments))));
  }
  for (const [at, round] of run.rounds.entries()) {
    const asked = run.asked[at];
    const ms = !Number(round.latency_ms) ? "" : milliseconds(round.latency_ms);
    parts.push(el("h4", { class: "round" }, round.step === null ? `round ${round.number}` : `round ${round.number}, step ${round.step}`, el("small", null, [round.replayed ? "replayed" : ms, round.usage && `${whole(round.usage.output_tokens)} tokens out`, round.stop_reason].filter(Boolean).join(" · "))));
    if (asked.system !== null && asked.system !== system) parts.push(said("system", "system prompt of the step", (system = asked.system), true));
    parts.push(said("user", "user", asked?.user ?? null));
    for (const text of round.added) parts.push(said("user", "✎ user, added by hand", text));
    for (const text of round.errors) parts.push(said("problem", "▲ the request failed", text));
    for (const text of new Set(round.deviations.map((each) => each.detail))) parts.push(said("problem", "▲ repaired", text));
    for (const answer of round.set_aside) parts.push(fold("aside", "an earlier answer, made again by hand", [said("model", "model", answer.text), answer.calls.map((each) => actualCall(each, null, run))]));
    if (asked?.reasoning) parts.push(fold("reasoning", "reasoning", longText(asked.reasoning)));
    parts.push(said("model", "model", round.text));
    for (const each of round.calls) {
      parts.push(actualCall(each, pairings.get(call) ?? null, run));
      call += 1;
    }
    if (!round.calls.length && !round.text.trim() && round.stop_reason !== null) parts.push(said("model", "model", "(empty)"));
  }
  for (const pairing of missing) {
    const call = run.expectations.calls[pairing.expected_call];
    parts.push(el("div", { class: "said missing" }, el("small", { class: "who" }, "✗ expected and not called"), call ? expectedCall(call) : null));
  }
  if (run.finish && !["answered", "steps done", "decided"].includes(run.finish)) parts.push(el("p", { class: "ending" }, `■ ended: ${run.finish}`));
  if (run.error !== null) parts.push(said("problem", "▲ why", run.error));
  return parts.filter(Boolean);
}

function said(kind, who, text, isFolded = false) {
  if (text === null || text === undefined || (text === "" && kind !== "tool")) return null;
  const body = longText(text);
  return isFolded && text.length > 160 ? fold(kind, who, body) : el("div", { class: `said ${kind}` }, el("small", { class: "who" }, who), body);
}

function actualCall(call, pairing, run) {
  const right = pairing && pairing.arguments.every((each) => each.holds !== false) && pairing.same_tool;
  const expected = pairing?.expected_call === null || pairing?.expected_call === undefined ? null : run.expectations.calls[pairing.expected_call];
  const forbidden = pairing !== null && pairing.prohibition !== null;
  const state = pairing === null ? "" : expected && right ? "passed" : "failed";
  const note = pairing === null ? "" : expected === null ? pairing.outcome : pairing.same_tool ? pairing.outcome : `${pairing.outcome}, expected ${expected.tool}`;
  const head = el("div", { class: "call-head" }, el("span", { class: "sign", "aria-hidden": "true" }, state ? STATUS[state].sign : "→"), el("code", { class: "tool" }, call.tool), note && el("span", { class: `outcome ${state}` }, forbidden ? `forbidden: ${note}` : note), call.server !== null && el("small", null, `server ${call.server}`));
  return el(
    "div",
    { class: `call actual ${state}` },
    head,
    call.problem !== null ? [el("p", { class: "failed" }, `✗ the arguments are no JSON object: ${call.problem}`), longText(call.raw ?? "")] : argumentsTable(call.arguments, pairing),
    call.edited !== null && el("div", null, el("small", { class: "who" }, "✎ sent instead, changed by hand"), longText(json(call.edited))),
    call.unedited !== null && el("div", { class: "returned" }, el("small", { class: "who" }, "result before it was changed by hand"), longText(pretty(call.unedited))),
    call.result !== null && el("div", { class: call.is_error ? "returned problem" : "returned" }, el("small", { class: "who" }, `← ${call.is_error ? "error from " : ""}${call.source ?? "result"}${call.latency_ms === null ? "" : ` ${milliseconds(call.latency_ms)}`}`), longText(pretty(call.result))),
  );
}

// The text of a result, indented where it is JSON on one line; nothing in it is changed.
function pretty(text) {
  if (!/^[[{]/.test(text) || text.includes("\n") || text.length > 100_000) return text;
  try {
    return json(JSON.parse(text, withNumerals));
  } catch {
    return text;
  }
}

function argumentsTable(given, pairing) {
  const verdicts = pairing?.arguments ?? [];
  const judged = new Set(verdicts.map((each) => each.argument));
  const rest = Object.entries(given).filter(([name]) => !judged.has(name));
  if (!verdicts.length && !rest.length) return el("p", { class: "quiet" }, "no arguments");
  const rows = verdicts.map((each) => {
    const state = each.holds === null ? "" : each.holds ? "passed" : "failed";
    const worth = Number(each.weight) || Number(each.score) ? `${figure(each.score)} of ${figure(each.weight)}` : "";
    return el(
      "tr",
      { class: state },
      el("td", { class: "sign" }, state ? STATUS[state].sign : "·"),
      el("th", { scope: "row" }, each.argument, each.required && el("small", { title: "the run fails without it, whatever the score is" }, " required")),
      el("td", null, each.given ? longText(json(each.got)) : el("em", null, "not given")),
      el("td", null, el("code", null, each.expected)),
      el("td", { class: "why" }, each.why, worth && el("small", null, each.why ? ` · ${worth}` : worth)),
    );
  });
  rows.push(...rest.map(([name, value]) => el("tr", null, el("td", { class: "sign" }, "·"), el("th", { scope: "row" }, name), el("td", null, longText(json(value))), el("td"), el("td", { class: "why" }, pairing && pairing.expected_call !== null ? "not checked" : ""))));
  const titles = verdicts.length ? ["", "argument", "got", "expected", "why"] : ["", "argument", "value", "", ""];
  return el("table", { class: "arguments" }, el("thead", null, el("tr", null, titles.map((title) => (title ? el("th", { scope: "col" }, title) : el("td"))))), el("tbody", null, rows));
}
