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
    const { models } = this.data.head;
    const chip = (run) => el("button", { type: "button", class: `chip ${STATUS[run.status].role}`, "aria-pressed": String(run === this.run), title: [STATUS[run.status].word, run.reason].filter(Boolean).join(": "), onclick: () => this.show(run, this.beside === run ? null : this.beside) }, STATUS[run.status].sign, " ", run.name);
    const groups = this.each.runs.map((runs, column) => runs.length > 0 && el("div", { class: "of-model" }, el("span", { class: "model" }, models[column]), runs.map(chip)));
    const others = this.each.runs.flat().filter((run) => run !== this.run);
    const select = others.length > 0 && el("select", { "aria-label": "Side by side with" }, el("option", { value: "" }, "side by side with …"), others.map((run) => el("option", { value: run.number, selected: run === this.beside }, `${STATUS[run.status].sign} ${models[run.model]} ${run.name}`)));
    if (select) select.addEventListener("change", () => this.show(this.run, others[select.selectedIndex - 1] ?? null));
    this.chosen.replaceChildren(...(select ? [...groups.filter(Boolean), select] : []));
  }
}

// The chosen one of the grades is the one whose verdicts are shown at calls and arguments.
function runView({ view }) {
  const run = drawn(view);
  const tabs = [...run.querySelectorAll("[data-tab]")];
  for (const tab of tabs) {
    tab.addEventListener("click", () => {
      for (const other of tabs) other.setAttribute("aria-pressed", String(other === tab));
      for (const each of run.querySelectorAll("[data-grade]")) each.hidden = !each.dataset.grade.split(" ").includes(tab.dataset.tab);
    });
  }
  return run;
}

const MOST_PAIRED = 400;

// Pairs of steps in order, those with the same key beside each other: the longest common sequence of keys.
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

// Marks the arguments and the result of a call that are other ones in the same call of the other run.
function markDifferences(call, other) {
  const values = new Map([...other.querySelectorAll("tr")].map((row) => [row.cells[1].textContent, row.textContent]));
  for (const row of call.querySelectorAll("tr")) {
    if (values.get(row.cells[1].textContent) === row.textContent) continue;
    row.classList.add("differs");
    row.cells[0].textContent = "≠";
  }
  const result = call.querySelector(".returned pre");
  if (result !== null && result.textContent !== other.querySelector(".returned pre")?.textContent) call.querySelector(".returned .who").append("  ≠");
}

function pairView(run, other) {
  const pairs = paired(run.steps, other.steps);
  const equal = ([left, right]) => left && right && JSON.stringify(left.view) === JSON.stringify(right.view);
  const first = pairs.findIndex((pair) => !equal(pair));
  const common = first < 0 ? pairs : pairs.slice(0, first);
  const rows = (some) => some.map((pair) => {
    const [left, right] = pair.map((each) => (each ? drawn(each.view) : el("p", { class: "quiet" }, "–")));
    if (!equal(pair) && pair[0]?.key === pair[1]?.key) {
      const before = left.cloneNode(true);
      markDifferences(left, right);
      markDifferences(right, before);
    }
    return [left, right].map((each) => el("div", { class: equal(pair) ? "side" : "side differs" }, each));
  });
  const steps = counted(common.length, "step");
  return el(
    "div",
    { class: "pair" },
    el("div", { class: "sides" }, [run, other].map((each) => el("div", { class: "side head" }, each.head.map(drawn)))),
    el("p", { class: "parting" }, first < 0 ? "Both did the same." : first === 0 ? "They differ from the first step on." : `The same for ${steps}, then they differ.`),
    common.length > 0 && el("details", { class: "fold", open: first < 0 }, el("summary", null, `the same: ${steps}`), el("div", { class: "sides" }, rows(common))),
    first >= 0 && el("div", { class: "sides" }, rows(pairs.slice(first))),
  );
}
