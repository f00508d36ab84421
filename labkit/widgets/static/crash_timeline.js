import { OWN_KEYS, follow, h, svg, uniqueId } from "./dom.js";

const [LABEL, STEP, ROW, TOP] = [260, 24, 28, 34];
const LETTERS = {
  create: "+",
  mkdir: "+",
  symlink: "+",
  write: "W",
  truncate: "T",
  link: "=",
  rename: "→",
  unlink: "−",
  rmdir: "−",
  chmod: "M",
  sync: "S",
  acknowledge: "✓",
};

/** One step: its letter says what it was, shape and fill say what became of it. */
function box(x, y, { op, fate, share, text }, hatch) {
  const frame = { x: x + 2, y: y + 3, width: STEP - 4, height: STEP - 4, rx: op === "sync" ? 10 : 2 };
  const filled = { ...frame, "pointer-events": "none" };
  const parts = [svg("title", {}, text), svg("rect", { ...frame, class: `lab-fate lab-fate-${fate}` })];
  if (fate === "shortened")
    parts.push(svg("rect", { ...filled, width: frame.width * share, class: "lab-fate-kept" }));
  if (fate === "zero-filled") parts.push(svg("rect", { ...filled, fill: `url(#${hatch})` }));
  const letter = fate === "lost" ? "✗" : LETTERS[op];
  parts.push(svg("text", { x: x + STEP / 2, y: y + 18, class: "lab-fate-letter" }, letter));
  if (fate === "missing")
    parts.push(svg("path", { d: `M${x + 3} ${y + STEP - 2}L${x + STEP - 3} ${y + 4}`, class: "lab-fate-gone" }));
  return svg("g", {}, ...parts);
}

function pattern(id) {
  const lines = svg("path", { d: "M0 6L6 0", class: "lab-hatch" });
  return svg("defs", {}, svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, lines));
}

/** File names are long and their ends differ: the middle goes. */
function shortened(label) {
  return label.length > 36 ? `${label.slice(0, 16)}…${label.slice(-19)}` : label;
}

function lanes(view, wide) {
  return view.lanes.flatMap((label, at) => {
    const y = TOP + at * ROW;
    return [
      svg("path", { d: `M0 ${y + ROW}H${LABEL + wide}`, class: "lab-matrix-line" }),
      svg("text", { x: 0, y: y + 18 }, shortened(label), svg("title", {}, label)),
    ];
  });
}

function crash(view, words, bottom) {
  const x = LABEL + view.after * STEP;
  return [
    svg("path", { d: `M${x} 18V${bottom}`, class: "lab-crash-line" }),
    svg("text", { x: x + 4, y: 14, class: "lab-crash-word" }, `⚡ ${words.here}`),
  ];
}

function picture(view, words, hatch) {
  const wide = Math.max(view.steps.length * STEP, 60) + 60;
  const bottom = TOP + view.lanes.length * ROW;
  const every = Math.max(1, Math.ceil(view.steps.length / 40));
  const ticks = view.steps
    .map((_, at) => at)
    .filter((at) => at % every === 0)
    .map((at) =>
      svg("text", { x: LABEL + (at + 0.5) * STEP, y: bottom + 16, class: "lab-matrix-tick" }, String(at + 1)),
    );
  const bars = view.bars.map(([lane, first, sync]) => {
    const y = TOP + lane * ROW + ROW - 3;
    return svg("path", { d: `M${LABEL + (first - 1) * STEP + 3} ${y}H${LABEL + sync * STEP - 3}`, class: "lab-secured" });
  });
  return svg(
    "svg",
    { width: LABEL + wide, height: bottom + 22, role: "img", "aria-label": view.title },
    pattern(hatch),
    ...lanes(view, wide),
    ...bars,
    ...view.steps.map((step, at) => box(LABEL + at * STEP, TOP + step.lane * ROW, step, hatch)),
    ...crash(view, words, bottom),
    ...ticks,
  );
}

function legend(view, words, hatch) {
  const items = view.fates.map(([fate, text]) => {
    const shown = svg(
      "svg",
      { width: STEP, height: STEP + 2, "aria-hidden": "true" },
      box(0, 0, { op: fate === "done" ? "sync" : "write", fate, share: 0.5, text }, hatch),
    );
    return h("li", {}, shown, text);
  });
  const bar = svg(
    "svg",
    { width: STEP, height: STEP + 2, "aria-hidden": "true" },
    svg("path", { d: `M2 14H${STEP - 2}`, class: "lab-secured" }),
  );
  return h("ul", { className: "lab-legend" }, ...items, h("li", {}, bar, words.legend));
}

function table(view, words) {
  const row = (cells, at) =>
    h(
      "tr",
      { className: `lab-step-${view.steps[at].fate}` },
      h("th", { scope: "row" }, cells[0]),
      ...cells.slice(1).map((cell) => h("td", {}, cell)),
    );
  const rows = view.rows.map(row);
  const here = h("td", { colSpan: view.head.length }, `⚡ ${words.here}`);
  rows.splice(view.after, 0, h("tr", { className: "lab-crash-here" }, here));
  const head = view.head.map((one) => h("th", { scope: "col" }, one));
  return h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows));
}

function scroller(className, label) {
  return h("div", { className, tabIndex: 0, ...OWN_KEYS, role: "group", "aria-label": label });
}

/** Keep the crash in sight, in the picture and in the table, without moving the page. */
function reveal(frame, rows, after) {
  frame.scrollLeft = Math.max(0, LABEL + after * STEP - frame.clientWidth * 0.7);
  const here = rows.querySelector(".lab-crash-here");
  if (here) rows.scrollTop = Math.max(0, here.offsetTop - rows.clientHeight * 0.7);
}

function render({ model, el }) {
  const words = model.get("words");
  const hatch = uniqueId("lab-zeros");
  const caption = h("figcaption");
  const lines = h("div");
  const frame = scroller("lab-picture-frame", words.frame);
  const key = h("div");
  const rows = scroller("lab-scroll", words.table);
  const figure = h("figure", { className: "lab lab-picture lab-crash" }, caption, lines, frame, key, rows);
  el.append(figure);

  return follow(model, ["view"], () => {
    const view = model.get("view");
    figure.hidden = !view.steps;
    if (!view.steps) return;
    caption.textContent = view.title;
    lines.replaceChildren(
      ...view.lines.map(([mark, text]) => h("p", { className: `lab-note lab-is-${mark}` }, text)),
    );
    frame.replaceChildren(picture(view, words, hatch));
    key.replaceChildren(legend(view, words, hatch));
    rows.replaceChildren(table(view, words));
    requestAnimationFrame(() => reveal(frame, rows, view.after)); // it has no size before it is laid out
  });
}

export default { render };
