// Cases down, models across, and what of them is shown. What is chosen stands in the address after `#`.

const AT_ONCE = 120;
const AT_A_TIME = 300;
const MOST = 3_000;

class Filter {
  constructor(parameters = new URLSearchParams()) {
    this.text = parameters.get("text") ?? "";
    this.statuses = new Set(STATUSES.filter((status) => parameters.get("status")?.split(",").includes(status)));
    for (const name of ["model", "suite", "tag", "cause", "order"]) this[name] = parameters.get(name) ?? "";
    for (const name of ["differs", "disagree"]) this[name] = parameters.has(name);
  }

  put(parameters) {
    if (this.text) parameters.set("text", this.text);
    if (this.statuses.size) parameters.set("status", [...this.statuses].join(","));
    for (const name of ["model", "suite", "tag", "cause", "order"]) if (this[name]) parameters.set(name, this[name]);
    for (const name of ["differs", "disagree"]) if (this[name]) parameters.set(name, "1");
  }

  get isEmpty() {
    const parameters = new URLSearchParams();
    this.put(parameters);
    parameters.delete("order");
    return !parameters.size;
  }

  // Returns whether a case is shown. Status, cause and disagreement are asked of the runs with the chosen model.
  holds(each, models) {
    if (this.suite && each.suite !== this.suite) return false;
    if (this.tag && !each.tags.includes(this.tag)) return false;
    if (this.differs && !each.differs) return false;
    const looked = [...models.keys()].filter((column) => each.runs[column].length && (!this.model || models[column] === this.model));
    if (!looked.length) return false;
    if (this.statuses.size && !looked.some((column) => this.#has(each, column))) return false;
    const runs = looked.flatMap((column) => each.runs[column]);
    if (this.cause && !runs.some((run) => run.causes.includes(this.cause))) return false;
    if (this.disagree && !runs.some((run) => run.disagree)) return false;
    if (!this.text) return true;
    const words = this.text.toLowerCase().split(/\s+/).filter(Boolean);
    each.searched ??= [each.case_name, each.case_id, each.suite_name, ...each.tags, ...each.runs.flat().map((run) => run.reason)].join("\n").toLowerCase();
    return words.every((word) => each.searched.includes(word));
  }

  #has(each, column) {
    const { status, statuses } = each.cells[column];
    return [status, ...statuses].some((one) => this.statuses.has(one));
  }
}

class Matrix {
  #rows = new Map();
  #shown = [];
  #drawn = 0;
  #drawing = 0;
  #isFirst = true;
  #panel = null;

  constructor(data, changed) {
    this.data = data;
    this.changed = changed;
    this.filter = new Filter();
    this.models = data.head.models;
    this.withSuites = new Set(data.cases.map((each) => each.suite)).size > 1;
    this.count = el("p", { class: "count", role: "status" });
    this.body = el("div", { class: "scrolled matrix" });
    this.more = el("p", { class: "quiet" });
    this.controls = el("form", { class: "filter", role: "search", "aria-label": "Filter of cases", onsubmit: (event) => event.preventDefault() });
    this.element = el("section", { id: "cases", "aria-labelledby": "cases-title" }, el("h2", { id: "cases-title" }, "Cases"), this.controls, this.count, this.body, this.more);
    this.body.addEventListener("keydown", (event) => this.#key(event));
    addEventListener("beforeprint", () => this.#drawUpTo(this.#shown.length));
  }

  show(filter) {
    this.filter = filter;
    this.#drawControls();
    this.apply();
  }

  // Draws the rows anew, after a change of the filter.
  apply() {
    this.close(false);
    this.#shown = this.data.cases.filter((each) => this.filter.holds(each, this.models));
    if (this.filter.order === "worst") this.#shown.sort((one, other) => this.#rank(one) - this.#rank(other) || one.place - other.place);
    const { cases } = this.data;
    this.count.replaceChildren(this.#shown.length === cases.length ? counted(cases.length, "case") : `${whole(this.#shown.length)} of ${counted(cases.length, "case")}`);
    if (!this.filter.isEmpty) this.count.append(" ", el("button", { type: "button", class: "link", onclick: () => this.#changeTo(new Filter()) }, "show all"));
    const head = el("tr", null, el("th", { scope: "col" }, "case"), this.models.map((model) => el("th", { scope: "col", class: "model" }, model)), this.models.length === 1 && el("th", { scope: "col", class: "why" }, "why"));
    this.table = el("table", { role: "grid", "aria-label": "Cases by model" }, el("thead", null, head), el("tbody"));
    this.#rows.clear();
    this.#isFirst = true;
    this.#drawn = 0;
    this.body.replaceChildren(this.table);
    this.more.replaceChildren();
    this.#drawUpTo(AT_ONCE);
    this.#drawLater();
  }

  #rank(each) {
    return Math.min(...each.cells.map((cell) => STATUS[cell.status]?.urgency ?? STATUSES.length));
  }

  #changeTo(filter) {
    this.show(filter);
    this.changed();
  }

  #drawLater() {
    const drawing = (this.#drawing += 1);
    const later = globalThis.requestIdleCallback ?? ((work) => setTimeout(work, 10));
    const goOn = () => {
      if (drawing !== this.#drawing) return;
      if (this.#drawn < Math.min(this.#shown.length, MOST)) {
        this.#drawUpTo(this.#drawn + AT_A_TIME);
        later(goOn);
      } else if (this.#drawn < this.#shown.length) {
        const rest = this.#shown.length - this.#drawn;
        this.more.replaceChildren(el("button", { type: "button", onclick: () => { this.more.replaceChildren(); this.#drawUpTo(this.#drawn + MOST); this.#drawLater(); } }, `show ${whole(Math.min(rest, MOST))} more of ${counted(rest, "case")}`));
      }
    };
    later(goOn);
  }

  #drawUpTo(most) {
    const rows = document.createDocumentFragment();
    for (; this.#drawn < Math.min(most, this.#shown.length); this.#drawn += 1) {
      const each = this.#shown[this.#drawn];
      const before = this.#shown[this.#drawn - 1];
      if (this.withSuites && this.filter.order !== "worst" && each.suite !== before?.suite) rows.append(el("tr", { class: "suite" }, el("th", { colspan: this.models.length + 2, scope: "rowgroup" }, el("span", null, each.suite_name), " ", el("small", null, each.suite))));
      const row = this.#row(each);
      this.#rows.set(each.place, row);
      rows.append(row);
    }
    this.table.tBodies[0].append(rows);
  }

  #row(each) {
    const tags = each.tags.map((tag) => el("span", { class: "tag" }, tag));
    const title = el("th", { scope: "row" }, el("span", { class: "title" }, each.case_name), tags);
    const why = this.models.length === 1 && el("td", { class: "why" }, each.cells[0].reason);
    return el("tr", null, title, each.cells.map((cell, column) => el("td", null, this.#cell(each, cell, column))), why);
  }

  #cell(each, cell, column) {
    if (!each.runs[column].length) return el("span", { class: "quiet", role: "img", "aria-label": cell.label }, cell.score);
    const first = this.#isFirst;
    this.#isFirst = false;
    return el(
      "button",
      { type: "button", class: `cell ${cell.role}`, tabindex: first ? "0" : "-1", "aria-label": cell.label, title: [cell.label, cell.reason].filter(Boolean).join(": "), "aria-expanded": "false", "data-column": column, onclick: () => this.#toggle(each, column) },
      cell.sign && el("span", { class: "sign", "aria-hidden": "true" }, cell.sign),
      cell.share && [el("b", null, cell.share), " "],
      el("span", null, cell.score),
      cell.disagree && el("span", { class: "apart", "aria-hidden": "true", title: "the graders disagree" }, "≠"),
    );
  }

  #toggle(each, column) {
    const isOpen = this.#panel?.each === each && this.#panel.column === column;
    if (isOpen) this.close();
    else this.openCase(each, column);
  }

  // Unfolds a case with a model: its first run that did not pass, or the run with that number. Returns a promise.
  openCase(each, column, number = null, beside = null) {
    if (!this.#shown.includes(each)) this.show(new Filter());
    this.#drawUpTo(this.#shown.indexOf(each) + 1);
    this.close(false);
    const runs = each.runs[column];
    const chosen = runs.find((run) => run.number === number) ?? runs.find((run) => run.status !== "passed") ?? runs[0];
    const row = this.#rows.get(each.place);
    const button = row.querySelector(`button[data-column="${column}"]`);
    button.setAttribute("aria-expanded", "true");
    this.#focusable(button);
    row.classList.add("open");
    const view = new CaseView(this.data, each, { close: () => this.close(), changed: () => this.changed() });
    const panel = el("tr", { class: "unfolded" }, el("td", { colspan: this.models.length + 2 }, view.element));
    this.#panel = { each, column, row, button, panel, view };
    row.after(panel);
    return view.show(chosen, beside);
  }

  // Unfolds a case and brings it into sight, once everything above it has its height.
  async goTo(each, column, number = null, beside = null) {
    await this.openCase(each, column, number, beside);
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    this.#panel?.row.scrollIntoView({ block: "start", behavior: "instant" });
  }

  close(tell = true) {
    if (this.#panel === null) return;
    const { row, button, panel } = this.#panel;
    panel.remove();
    row.classList.remove("open");
    button.setAttribute("aria-expanded", "false");
    this.#panel = null;
    if (!tell) return;
    button.focus();
    this.changed();
  }

  put(parameters) {
    this.filter.put(parameters);
    this.#panel?.view.put(parameters);
  }

  #focusable(button) {
    this.table.querySelector('button[tabindex="0"]')?.setAttribute("tabindex", "-1");
    button.setAttribute("tabindex", "0");
  }

  #key(event) {
    if (event.key === "Escape" && this.#panel !== null) {
      this.close();
      return;
    }
    const button = event.target.closest("button.cell");
    const [down, across] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
    if (button === null || (!down && !across)) return;
    event.preventDefault();
    const column = Number(button.dataset.column) + across;
    let row = button.closest("tr");
    do row = down > 0 ? row.nextElementSibling : down < 0 ? row.previousElementSibling : row;
    while (row !== null && down && row.querySelector(`:scope > td > button.cell[data-column="${column}"]`) === null);
    const next = row?.querySelector(`:scope > td > button.cell[data-column="${column}"]`);
    if (!next) return;
    this.#focusable(next);
    next.focus();
  }

  #drawControls() {
    const { filter, data } = this;
    const changed = () => {
      this.apply();
      this.changed();
    };
    const text = el("input", { type: "search", placeholder: "case, tag, reason …", "aria-label": "Text", value: filter.text, id: "filter-text" });
    let waiting = 0;
    text.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        filter.text = text.value;
        changed();
      }, 80);
    });
    const counts = new Map();
    for (const { status } of data.cases.flatMap((each) => each.cells)) counts.set(status, (counts.get(status) ?? 0) + 1);
    const statuses = STATUSES.filter((status) => counts.has(status)).map((status) => {
      const toggle = el("button", { type: "button", class: `toggle ${STATUS[status].role}`, "aria-pressed": String(filter.statuses.has(status)) }, sign(status), ` ${STATUS[status].word} `, el("small", null, whole(counts.get(status))));
      toggle.addEventListener("click", () => {
        if (!filter.statuses.delete(status)) filter.statuses.add(status);
        toggle.setAttribute("aria-pressed", String(filter.statuses.has(status)));
        changed();
      });
      return toggle;
    });
    const choice = (name, label, values, least = 2) => {
      if (values.length < least && !filter[name]) return null;
      const select = el("select", { "aria-label": label }, el("option", { value: "" }, label), values.map(([value, shown]) => el("option", { value, selected: value === filter[name] }, shown)));
      select.addEventListener("change", () => {
        filter[name] = values[select.selectedIndex - 1]?.[0] ?? "";
        changed();
      });
      return select;
    };
    const check = (name, label, isOffered) => {
      if (!isOffered && !filter[name]) return null;
      const box = el("input", { type: "checkbox", checked: filter[name] });
      box.addEventListener("change", () => {
        filter[name] = box.checked;
        changed();
      });
      return el("label", null, box, ` ${label}`);
    };
    const distinct = (values) => [...new Set(values)].map((value) => [value, value]);
    const suites = new Map(data.cases.map((each) => [each.suite, each.suite_name]));
    this.controls.replaceChildren(
      ...[
        text,
        el("div", { class: "toggles", role: "group", "aria-label": "Statuses" }, statuses),
        choice("model", "all models", distinct(this.models)),
        choice("suite", "all suites", [...suites]),
        choice("tag", "all tags", distinct(data.cases.flatMap((each) => each.tags)).sort()),
        choice("cause", "all causes", distinct(data.facts.flatMap((run) => run.causes))),
        choice("order", "as in the suites", [["worst", "worst first"]], 1),
        check("differs", "models differ", this.models.length > 1),
        check("disagree", "graders disagree", data.facts.some((run) => run.disagree)),
      ].filter(Boolean),
    );
  }
}
