import { OWN_KEYS, follow, h, svg, uniqueId } from "./dom.js";

const [LABEL, STEP, ROW, TOP] = [250, 24, 28, 34];
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
  return label.length > 32 ? `${label.slice(0, 13)}…${label.slice(-17)}` : label;
}

/** The names of the lanes stay where they are while the steps scroll. */
function labels(view) {
  const texts = view.lanes.map((label, at) =>
    svg("text", { x: 0, y: TOP + at * ROW + 18 }, shortened(label), svg("title", {}, label)),
  );
  const height = TOP + view.lanes.length * ROW + 22;
  return svg("svg", { width: LABEL, height, "aria-hidden": "true" }, ...texts);
}

function lines(view, wide) {
  return view.lanes.map((_, at) =>
    svg("path", { d: `M0 ${TOP + (at + 1) * ROW}H${wide}`, class: "lab-matrix-line" }),
  );
}

function crash(view, words, bottom) {
  const x = view.after * STEP;
  return [
    svg("path", { d: `M${x} 18V${bottom}`, class: "lab-crash-line" }),
    svg("text", { x: x + 4, y: 14, class: "lab-crash-word" }, `⚡ ${words.here}`),
  ];
}

function ticks(view, bottom) {
  return view.steps.map((_, at) =>
    svg("text", { x: (at + 0.5) * STEP, y: bottom + 16, class: "lab-matrix-tick" }, String(at + 1)),
  );
}

/** What one sync secured: a line below the steps, as far as the sync. */
function bars(view) {
  return view.bars.map(([lane, first, sync]) => {
    const y = TOP + lane * ROW + ROW - 3;
    return svg("path", { d: `M${(first - 1) * STEP + 3} ${y}H${sync * STEP - 3}`, class: "lab-secured" });
  });
}

function picture(view, words, hatch) {
  const wide = view.steps.length * STEP + 70;
  const bottom = TOP + view.lanes.length * ROW;
  return svg(
    "svg",
    { width: wide, height: bottom + 22, role: "img", "aria-label": view.title },
    pattern(hatch),
    ...lines(view, wide),
    ...bars(view),
    ...view.steps.map((step, at) => box(at * STEP, TOP + step.lane * ROW, step, hatch)),
    ...crash(view, words, bottom),
    ...ticks(view, bottom),
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
  frame.scrollLeft = Math.max(0, after * STEP - frame.clientWidth * 0.7);
  const here = rows.querySelector(".lab-crash-here");
  if (here) rows.scrollTop = Math.max(0, here.offsetTop - rows.clientHeight * 0.7);
}

function render({ model, el }) {
  const words = model.get("words");
  const hatch = uniqueId("lab-zeros");
  const caption = h("figcaption");
  const said = h("div");
  const names = h("div", { className: "lab-lane-names" });
  const frame = scroller("lab-picture-frame", words.frame);
  const lanes = h("div", { className: "lab-lanes" }, names, frame);
  const key = h("div");
  const rows = scroller("lab-scroll", words.table);
  const figure = h("figure", { className: "lab lab-picture lab-crash" }, caption, said, lanes, key, rows);
  el.append(figure);

  return follow(model, ["view"], () => {
    const view = model.get("view");
    figure.hidden = !view.steps;
    if (!view.steps) return;
    caption.textContent = view.title;
    said.replaceChildren(
      ...view.lines.map(([mark, text]) => h("p", { className: `lab-note lab-is-${mark}` }, text)),
    );
    names.replaceChildren(labels(view));
    frame.replaceChildren(picture(view, words, hatch));
    key.replaceChildren(legend(view, words, hatch));
    rows.replaceChildren(table(view, words));
    requestAnimationFrame(() => reveal(frame, rows, view.after)); // it has no size before it is laid out
  });
}

export default { render };
