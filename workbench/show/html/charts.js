// Charts, drawn as SVG for the width that there is, and again when that changes.

function nice(most, steps = 4) {
  const raw = most / steps || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((each) => each * power >= raw * 0.999) * power;
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, at) => at * step);
}

function chart(title, hint, draw) {
  const place = el("div", { class: "drawing" });
  let width = 0;
  const observer = new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now && now !== width) place.replaceChildren(draw((width = now)));
  });
  observer.observe(place);
  return el("figure", { class: "card chart" }, el("figcaption", null, el("strong", null, title), " ", el("small", null, hint)), place);
}

function picture(width, height, label, ...children) {
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...children);
}

function shortName(name, room) {
  const text = oneLine(name);
  const most = Math.max(4, Math.floor(room / 7));
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function named(name, room, y) {
  return svg("text", { x: 0, y, class: "name" }, shortName(name, room), svg("title", null, name));
}

const ROW = 38;

function passRates(totals) {
  const rated = totals.filter((each) => each.pass_rate !== null);
  if (!rated.length) return null;
  return chart("Pass rate", "cases that passed or were warned, with the 95% interval", (width) => {
    const left = Math.min(150, width * 0.3);
    const right = 62;
    const x = (share) => left + share * (width - left - right);
    const height = rated.length * ROW + 26;
    const axis = [0, 0.25, 0.5, 0.75, 1].map((share) => [
      svg("line", { x1: x(share), x2: x(share), y1: 4, y2: height - 20, class: "grid" }),
      svg("text", { x: x(share), y: height - 5, class: "tick", "text-anchor": "middle" }, `${share * 100}%`),
    ]);
    const rows = rated.map((each, at) => {
      const y = at * ROW + ROW / 2 + 4;
      // Of a model that was stopped early, there is no interval.
      const ends = each.interval ? [each.interval.low, each.interval.high] : [];
      const reach = ends.length ? `, ${ends.map(percent).join(" to ")}` : "";
      return svg(
        "g",
        null,
        svg("title", null, `${each.model}: ${percent(each.pass_rate)} of ${counted(each.graded, "case")}${reach}`),
        named(each.model, left - 8, y + 4),
        svg("line", { x1: x(0), x2: x(each.pass_rate), y1: y, y2: y, class: "bar" }),
        ends.length > 0 && svg("line", { x1: x(ends[0]), x2: x(ends[1]), y1: y, y2: y, class: "whisker" }),
        ends.map((end) => svg("line", { x1: x(end), x2: x(end), y1: y - 6, y2: y + 6, class: "whisker" })),
        svg("circle", { cx: x(each.pass_rate), cy: y, r: 5, class: "dot" }),
        svg("text", { x: width, y: y + 4, class: "value", "text-anchor": "end" }, percent(each.pass_rate)),
      );
    });
    const said = rated.map((each) => `${each.model} ${percent(each.pass_rate)}`).join(", ");
    return picture(width, height, `Pass rates: ${said}`, axis, rows);
  });
}

function latencies(totals, facts) {
  const timed = totals
    .map((each, column) => ({ ...each, times: facts.filter((run) => run.model === column && STATUS[run.status].graded).map((run) => Number(run.latency_ms)).filter(Boolean) }))
    .filter((each) => each.latency !== null && each.times.length);
  const most = Math.max(0, ...timed.map((each) => each.latency.max_ms));
  if (!most) return null;
  return chart("Latency", "of the model's answers in a run: how often it took how long; │ median, ┆ 95th percentile", (width) => {
    const left = Math.min(150, width * 0.3);
    const right = 24;
    const ticks = nice(most, width > 500 ? 5 : 3);
    const end = ticks.at(-1);
    const x = (ms) => left + (ms / end) * (width - left - right);
    const height = timed.length * (ROW + 8) + 26;
    const axis = ticks.map((ms) => [
      svg("line", { x1: x(ms), x2: x(ms), y1: 4, y2: height - 20, class: "grid" }),
      svg("text", { x: x(ms), y: height - 5, class: "tick", "text-anchor": "middle" }, ms ? milliseconds(ms).replace(".0 ", " ") : "0"),
    ]);
    const bins = Math.max(12, Math.min(64, Math.floor((width - left) / 9)));
    const rows = timed.map((each, at) => {
      const base = (at + 1) * (ROW + 8);
      const counts = new Array(bins).fill(0);
      for (const ms of each.times) counts[Math.min(bins - 1, Math.floor((ms / end) * bins))] += 1;
      const top = Math.max(...counts);
      const step = (width - left - right) / bins;
      const { p50_ms, p95_ms } = each.latency;
      return svg(
        "g",
        null,
        svg("title", null, `${each.model}: median ${milliseconds(p50_ms)}, 95th percentile ${milliseconds(p95_ms)}, at most ${milliseconds(each.latency.max_ms)}`),
        named(each.model, left - 8, base - 16),
        counts.map((count, bin) => {
          const tall = count ? Math.max(2, (count / top) * ROW * 0.8) : 0;
          return count > 0 && svg("rect", { x: left + bin * step + 0.5, y: base - tall, width: Math.max(1, step - 1), height: tall, class: "area" });
        }),
        svg("line", { x1: left, x2: width - right, y1: base, y2: base, class: "grid" }),
        svg("line", { x1: x(p50_ms), x2: x(p50_ms), y1: base - ROW, y2: base, class: "median" }),
        svg("line", { x1: x(p95_ms), x2: x(p95_ms), y1: base - ROW, y2: base, class: "ninety" }),
      );
    });
    const said = timed.map((each) => `${each.model} median ${milliseconds(each.latency.p50_ms)}`).join(", ");
    return picture(width, height, `Latency: ${said}`, axis, rows);
  });
}
