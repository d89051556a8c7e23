// The blocks of data in the page. All but those of runs are read at the start.

async function unpacked(block) {
  const packed = Uint8Array.from(atob(block.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

function blocksOf(kind) {
  return [...document.querySelectorAll(`script[data-kind=${kind}]`)];
}

async function recordsOf(kind) {
  return (await Promise.all(blocksOf(kind).map(unpacked))).flatMap((text) => JSON.parse(text));
}

// Keeps how numbers are written, where the browser tells it.
function withNumerals(name, value, context) {
  const changed = typeof value === "number" && context?.source !== undefined && String(value) !== context.source;
  return changed ? new Numeral(value, context.source) : value;
}

class Runs {
  #blocks = blocksOf("runs").map((block) => ({ first: Number(block.dataset.first), block, runs: null }));
  #recent = [];

  // A run with everything about it. The last few blocks are kept.
  async get(number) {
    const entry = this.#blocks.findLast((each) => each.first <= number);
    entry.runs ??= unpacked(entry.block).then((text) => JSON.parse(text, withNumerals));
    this.#recent = [...this.#recent.filter((each) => each !== entry), entry];
    if (this.#recent.length > 6) this.#recent.shift().runs = null;
    return (await entry.runs)[number - entry.first];
  }
}

// Everything the page is drawn from: the head, and cases with their runs by model.
async function loaded() {
  const [[head], cases, facts] = await Promise.all([
    recordsOf("head"),
    recordsOf("cases"),
    recordsOf("facts"),
  ]);
  for (const [place, each] of cases.entries()) {
    each.place = place;
    each.runs = head.models.map(() => []);
    each.byModel = head.models.map((model) => each.cells.find((cell) => cell.model === model) ?? null);
  }
  for (const [number, run] of facts.entries()) {
    run.number = number;
    cases[run.case]?.runs[run.model].push(run);
  }
  return { head, report: head.report, cases, facts, runs: new Runs() };
}
