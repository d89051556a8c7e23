// Elements and data. What a text says was written by Workbench; texts become text nodes and attributes here, and nothing else.

// `STATUS`, the parts of each status by its name, stands before this script.
const STATUSES = Object.keys(STATUS);

function el(name, properties, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false && child !== "") node.append(child);
  return node;
}

const CUT_AT = 1_500;
const CUT_LINES = 24;

// An element of the data: a name, attributes and children. One that says how there is more begins cut.
function drawn(tree) {
  if (typeof tree === "string") return tree;
  const [name, { "data-more": more, ...attributes }, ...children] = tree;
  const node = el(name, attributes, children.map(drawn));
  if (more === undefined) return node;
  const text = node.textContent;
  const head = text.split("\n").slice(0, CUT_LINES).join("\n").slice(0, CUT_AT);
  node.replaceChildren(head, "…\n", el("button", { type: "button", class: "more", onclick: () => node.replaceChildren(text) }, more));
  return node;
}

function sign(status) {
  return el("span", { class: "sign", "aria-hidden": "true" }, STATUS[status].sign);
}

function whole(number) {
  return number.toLocaleString("en-US");
}

function counted(number, noun) {
  return `${whole(number)} ${noun}${number === 1 ? "" : "s"}`;
}

async function unpacked(block) {
  const packed = Uint8Array.from(atob(block.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function blocksOf(kind) {
  return [...document.querySelectorAll(`script[data-kind=${kind}]`)];
}

async function recordsOf(kind) {
  return (await Promise.all(blocksOf(kind).map(unpacked))).flat();
}

// Runs with everything about them, read when they are asked for. The last few blocks are kept.
class Runs {
  #blocks = blocksOf("runs").map((block) => ({ first: Number(block.dataset.first), block, runs: null }));
  #recent = [];

  async get(number) {
    const entry = this.#blocks.findLast((each) => each.first <= number);
    entry.runs ??= unpacked(entry.block);
    this.#recent = [...this.#recent.filter((each) => each !== entry), entry];
    if (this.#recent.length > 6) this.#recent.shift().runs = null;
    return (await entry.runs)[number - entry.first];
  }
}

// Everything but the runs themselves: the head, and cases with their runs by model.
async function loaded() {
  const [[head], cases, facts] = await Promise.all([recordsOf("head"), recordsOf("cases"), recordsOf("facts")]);
  for (const [place, each] of cases.entries()) {
    each.place = place;
    each.runs = head.models.map(() => []);
  }
  for (const [number, run] of facts.entries()) {
    run.number = number;
    cases[run.case]?.runs[run.model].push(run);
  }
  return { head, cases, facts, runs: new Runs() };
}
