// Elements, text and numbers. Text of models and tools becomes text nodes and attributes here, and nothing else.

// `STATUS`, the parts of each status by its name, stands before this script.
const STATUSES = Object.keys(STATUS);
const NOTHING = "–";

const ACTED_ON =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}\ud800-\udfff]/gu;

// Text with control characters as their pictures, invisible and bidirectional ones as <U+202E>. Tabs and newlines stay.
function visible(text) {
  return text.replace(ACTED_ON, (character) => {
    const code = character.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return code === 0x7f ? "␡" : `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
  });
}

function oneLine(text) {
  return visible(text.replaceAll("\r\n", "\n").replaceAll("\t", " ")).replaceAll("\n", "⏎");
}

function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : visible(String(child)));
  }
  return node;
}

function dressed(node, properties) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : visible(String(value)));
  }
  return node;
}

function el(name, properties, ...children) {
  return append(dressed(document.createElement(name), properties), children);
}

function svg(name, properties, ...children) {
  return append(dressed(document.createElementNS("http://www.w3.org/2000/svg", name), properties), children);
}

function badge(status, ...more) {
  return el("span", { class: `badge ${tone(status)}` }, el("span", { class: "sign", "aria-hidden": "true" }, STATUS[status].sign), " ", STATUS[status].word, ...more);
}

function tone(status) {
  return STATUS[status].role;
}

const CUT_AT = 1_500;
const CUT_LINES = 24;

// A text that is folded where it is long.
function longText(text, properties = {}) {
  const lines = text.split("\n");
  const box = el("pre", { ...properties, class: `text ${properties.class ?? ""}` });
  if (text.length <= CUT_AT && lines.length <= CUT_LINES) return append(box, [text]);
  const head = lines.slice(0, CUT_LINES).join("\n").slice(0, CUT_AT);
  const more = el("button", { type: "button", class: "more", onclick: () => box.replaceChildren(visible(text)) });
  append(more, [`show all ${whole(text.length)} characters`]);
  return append(box, [head, "…\n", more]);
}

// A number of a run that JavaScript would write otherwise than the report does, such as 1.0 and large whole ones.
class Numeral extends Number {
  constructor(value, source) {
    super(value);
    this.source = source;
  }
}

// A value as JSON, indented where it does not fit a line.
function json(value, pad = "") {
  if (value instanceof Numeral) return value.source;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const inner = `${pad}  `;
  const parts = Array.isArray(value)
    ? value.map((item) => json(item, inner))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${json(item, inner)}`);
  const [begin, end] = Array.isArray(value) ? "[]" : "{}";
  const line = begin + parts.join(", ") + end;
  return line.length <= 80 && !line.includes("\n") ? line : `${begin}\n${inner}${parts.join(`,\n${inner}`)}\n${pad}${end}`;
}

function same(one, other) {
  return json(one) === json(other);
}

const THOUSANDS = new Intl.NumberFormat("en-US");
function whole(number) {
  return THOUSANDS.format(Number(number));
}

function counted(number, noun) {
  return `${whole(number)} ${noun}${Number(number) === 1 ? "" : "s"}`;
}

// With so many decimals, a half rounded up; what is below 1 is never shown as 1.
function decimals(value, digits = 2) {
  const number = Number(value);
  const scale = 10 ** digits;
  const exact = Number((number * scale).toPrecision(12));
  const rounded = Math.sign(exact) * Math.floor(Math.abs(exact) + 0.5);
  return ((number < 1 && rounded >= scale ? Math.floor(exact) : rounded) / scale).toFixed(digits);
}

function score(value) {
  return value === null || value === undefined ? "n/a" : decimals(value);
}

function percent(share) {
  if (share === null || share === undefined) return NOTHING;
  const number = Number(share);
  const shown = decimals(100 * number, 1);
  return `${number < 1 && shown === "100.0" ? "99.9" : shown}%`;
}

function milliseconds(value) {
  if (value === null || value === undefined) return NOTHING;
  const ms = Number(value);
  if (0 < ms && ms < 1) return "<1 ms";
  if (ms < 999.5) return `${ms.toFixed(0)} ms`;
  if (ms < 99_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1000);
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, String(seconds % 60).padStart(2, "0")];
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest} h` : `${minutes}:${rest} min`;
}

function dollars(value) {
  if (value === null || value === undefined) return "unknown";
  const amount = Number(value);
  if (!amount) return "$0";
  if (amount < 0.000001) return "<$0.000001";
  return `$${amount.toFixed(amount >= 1 ? 2 : amount >= 0.01 ? 4 : 6)}`;
}

function figure(value) {
  const number = Number(value);
  return number === 0 || Math.abs(number) >= 0.001 ? String(Number(number.toFixed(3))) : number.toPrecision(3);
}
