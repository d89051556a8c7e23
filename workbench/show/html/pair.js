// Two runs side by side, from where they part.

// What a run said and did, one entry each; entries are alike where `key` is the same, and equal where `json` is too.
function doings(run) {
  const all = [];
  for (const [at, round] of run.rounds.entries()) {
    const user = run.asked[at]?.user;
    if (user) all.push({ key: "user", what: user, draw: () => said("user", "user", user) });
    if (round.text.trim()) all.push({ key: "text", what: round.text, draw: () => said("model", "model", round.text) });
    for (const call of round.calls) {
      const what = [call.arguments, call.raw, call.result];
      all.push({ key: `call ${call.tool}`, what, call, draw: (other) => comparedCall(call, other?.key === `call ${call.tool}` ? other.call : null) });
    }
  }
  return all;
}

function comparedCall(call, other) {
  const differs = (name) => other !== null && (!Object.hasOwn(other.arguments, name) || !same(other.arguments[name], call.arguments[name]));
  const rows = Object.entries(call.arguments).map(([name, value]) => el("tr", { class: differs(name) ? "differs" : "" }, el("td", { class: "sign" }, differs(name) ? "≠" : "·"), el("th", { scope: "row" }, name), el("td", null, longText(json(value)))));
  const resultDiffers = other !== null && other.result !== call.result;
  return el(
    "div",
    { class: "call actual" },
    el("div", { class: "call-head" }, el("span", { class: "sign", "aria-hidden": "true" }, "→"), el("code", { class: "tool" }, call.tool)),
    call.problem === null ? el("table", { class: "arguments" }, el("tbody", null, rows)) : longText(call.raw ?? ""),
    call.result !== null && el("div", { class: call.is_error ? "returned problem" : "returned" }, el("small", { class: "who" }, `← ${call.source ?? "result"}${resultDiffers ? "  ≠" : ""}`), longText(pretty(call.result))),
  );
}

const MOST_PAIRED = 400;

// Pairs of entries in order, alike ones beside each other: the longest common sequence of keys.
function paired(one, other) {
  const [n, m] = [one.length, other.length];
  const alike = (i, j) => one[i].key === other[j].key;
  if (n * m > MOST_PAIRED ** 2) return Array.from({ length: Math.max(n, m) }, (_, at) => [one[at], other[at]]);
  const length = Array.from({ length: n + 1 }, () => new Uint32Array(m + 1));
  for (let i = n - 1; i >= 0; i -= 1) for (let j = m - 1; j >= 0; j -= 1) length[i][j] = alike(i, j) ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
  const pairs = [];
  let [i, j] = [0, 0];
  while (i < n || j < m) {
    const [left, right] = [[], []];
    while (i < n || j < m) {
      if (i < n && j < m && alike(i, j)) break;
      if (j >= m || (i < n && length[i + 1][j] >= length[i][j + 1])) left.push(one[i++]);
      else right.push(other[j++]);
    }
    // What each did instead of the other stands side by side too.
    for (let at = 0; at < Math.max(left.length, right.length); at += 1) pairs.push([left[at], right[at]]);
    if (i < n && j < m) pairs.push([one[i++], other[j++]]);
  }
  return pairs;
}

function pairView(run, other) {
  const pairs = paired(doings(run), doings(other));
  const equal = ([left, right]) => left && right && same(left.what, right.what);
  const first = pairs.findIndex((pair) => !equal(pair));
  const common = first < 0 ? pairs : pairs.slice(0, first);
  const rows = (some) => some.map((pair) => {
    const [left, right] = pair;
    return [el("div", { class: equal(pair) ? "side" : "side differs" }, left ? left.draw(right) : el("p", { class: "quiet" }, NOTHING)), el("div", { class: equal(pair) ? "side" : "side differs" }, right ? right.draw(left) : el("p", { class: "quiet" }, NOTHING))];
  });
  const head = [run, other].map((each) => el("div", { class: "side head" }, el("strong", null, each.model, each.repeat ? ` #${Number(each.repeat) + 1}` : ""), " ", badge(each.status, each.score === null ? null : el("b", null, ` ${score(each.score)}`)), el("p", { class: "quiet" }, each.error ?? decidingReason(each)), el("p", { class: "quiet" }, `${milliseconds(Number(each.limited_ms) || null)} · ${dollars(each.cost_usd)}`)));
  return el(
    "div",
    { class: "pair" },
    el("div", { class: "sides" }, head),
    el("p", { class: "parting" }, first < 0 ? "Both did the same." : first === 0 ? "They differ from the first step on." : `The same for ${counted(first, "step")}, then they differ.`),
    common.length > 0 && el("details", { class: "fold", open: first < 0 }, el("summary", null, `the same: ${counted(common.length, "step")}`), el("div", { class: "sides" }, rows(common))),
    first >= 0 && el("div", { class: "sides" }, rows(pairs.slice(first))),
  );
}
