// Puts the cases into the page, and keeps the address in step with what is shown of them.

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

async function start() {
  document.querySelector("header").append(themeButton());
  const place = document.getElementById("cases-place");
  if (typeof DecompressionStream === "undefined") {
    place.append(el("p", { class: "notice" }, "This browser is too old to unpack the report: Chrome 123, Firefox 120 and Safari 17.5 can, and later ones."));
    return;
  }
  const data = await loaded();
  const matrix = new Matrix(data, () => keepAddress(matrix));
  if (data.cases.length) place.append(matrix.element);
  fromAddress(matrix, data);
  addEventListener("hashchange", () => {
    if (fromAddress(matrix, data)) matrix.element.scrollIntoView();
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    event.preventDefault();
    document.getElementById("filter-text")?.focus();
  });
  document.documentElement.dataset.ready = "yes";
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

// Shows what the address says. Returns whether it is another one, and names no run.
function fromAddress(matrix, data) {
  if (address !== null && location.hash === address) return false;
  address = location.hash;
  const parameters = new URLSearchParams(location.hash.slice(1));
  const filter = new Filter(parameters);
  if (data.head.only_differences && !location.hash) filter.differs = true;
  matrix.show(filter);
  const run = data.facts[Number(parameters.get("run")) - 1];
  if (run === undefined || data.cases[run.case] === undefined) return true;
  const beside = data.facts[Number(parameters.get("beside")) - 1];
  matrix.goTo(data.cases[run.case], run.model, run.number, beside?.case === run.case && beside !== run ? beside : null);
  return false;
}

start();
