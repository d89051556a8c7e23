// Puts the page together, and keeps the address in step with it.

async function start() {
  const main = el("main", { class: "page" });
  document.body.append(main);
  if (typeof DecompressionStream === "undefined") {
    main.append(el("p", { class: "notice" }, "This browser is too old to unpack the report: Chrome 123, Firefox 120 and Safari 17.5 can, and later ones."));
    return;
  }
  const data = await loaded();
  const matrix = new Matrix(data, () => keepAddress(matrix));
  const openCase = (each, column) => matrix.goTo(each, column, null, data.head.kind === "changes" ? earlier(each, column, data) : null);
  const filterBy = (parameters) => {
    matrix.show(new Filter(new URLSearchParams(parameters)));
    keepAddress(matrix);
    matrix.element.scrollIntoView();
  };
  append(main, [
    heading(data),
    data.head.kind !== "changes" && figures(data),
    data.head.kind !== "changes" && demands(data),
    sinceBaseline(data, openCase),
    troubles(data, () => filterBy({ status: "error" })),
    causes(data, (cause) => filterBy({ cause })),
    models(data),
    charts(data),
    data.cases.length > 0 && matrix.element,
    el("footer", { class: "quiet" }, "Arrow keys move between cells, Enter unfolds one, Escape closes it, / goes to the filter. The address after # holds what is shown, for a link."),
  ]);
  fromAddress(matrix, data);
  addEventListener("hashchange", () => fromAddress(matrix, data));
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    event.preventDefault();
    document.getElementById("filter-text")?.focus();
  });
  document.documentElement.dataset.ready = "yes";
}

// The run of the earlier batch that belongs to a case with a model of the later one.
function earlier(each, column, { head }) {
  const { models } = head;
  const before = models.length === 2 ? 1 - column : models.findIndex((model) => model.startsWith(`${models[column]} (`));
  return each.runs[before]?.[0] ?? null;
}

let address = null;

function keepAddress(matrix) {
  const parameters = new URLSearchParams();
  matrix.put(parameters);
  const text = `#${parameters}`;
  if (text === address) return;
  address = text;
  history.replaceState(null, "", text);
}

function fromAddress(matrix, data) {
  if (address !== null && location.hash === address) return;
  address = location.hash;
  const parameters = new URLSearchParams(location.hash.slice(1));
  const filter = new Filter(parameters);
  if (data.head.only_differences && !location.hash) filter.differs = true;
  matrix.show(filter);
  const run = data.facts[Number(parameters.get("run")) - 1];
  if (run === undefined || data.cases[run.case] === undefined) return;
  const beside = data.facts[Number(parameters.get("beside")) - 1];
  matrix.goTo(data.cases[run.case], run.model, run.number, beside?.case === run.case && beside !== run ? beside : null);
}

start();
