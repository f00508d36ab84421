import { OWN_KEYS, follow, h, svg, uniqueId } from "./dom.js";

const [LEFT, WIDE, ROW, TOP] = [308, 580, 24, 26];
const SIGNS = { "goes-on": "▶", "nothing-left": "●", stops: "■" };

/** Verdicts differ in pattern as well as in colour. */
function pattern(id) {
  return svg(
    "defs",
    {},
    svg(
      "pattern",
      { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
      svg("path", { d: "M0 6L6 0", class: "lab-hatch" }),
    ),
  );
}

function phases(view, step) {
  return view.phases.map(({ start, end, verdict }) => {
    const [x, width] = [LEFT + start * step, (end - start) * step];
    const text = svg(
      "text",
      { x: x + width / 2, y: 15, class: "lab-matrix-phase" },
      verdict.length * 7.5 < width ? verdict : "",
    );
    return svg(
      "g",
      {},
      svg("title", {}, verdict),
      svg("rect", { x: x + 0.5, y: 2, width: width - 1, height: 18, class: "lab-matrix-band" }),
      text,
    );
  });
}

function row(view, { label, kind, runs }, at, step, hatch) {
  const y = TOP + at * ROW;
  const cells = runs.flatMap(({ start, end }) =>
    Array.from({ length: end - start }, (_, offset) => {
      const box = {
        x: LEFT + (start + offset) * step + 0.5,
        y: y + 3,
        width: Math.max(1, step - 1),
        height: ROW - 6,
      };
      const cell = svg(
        "rect",
        { ...box, class: `lab-cell lab-cell-${kind}` },
        svg("title", {}, view.told[start + offset]),
      );
      return kind === "stops"
        ? [cell, svg("rect", { ...box, fill: `url(#${hatch})`, "pointer-events": "none" })]
        : [cell];
    }).flat(),
  );
  return [
    svg("path", { d: `M0 ${y}H${LEFT + WIDE}`, class: "lab-matrix-line" }),
    svg("text", { x: 0, y: y + 16 }, `${SIGNS[kind]} ${label.replace(/^\w+ \/ /, "")}`),
    ...cells,
  ];
}

function invariant({ label, verdict, broken }, at, top, step) {
  const y = top + at * ROW;
  return [
    svg("text", { x: 0, y: y + 16, class: "lab-matrix-says" }, `${broken.length ? "✗" : "✓"} ${label}`),
    svg("rect", { x: LEFT + 0.5, y: y + 8, width: WIDE - 1, height: 6, rx: 3, class: "lab-matrix-held" }),
    ...broken.map((column) =>
      svg("rect", {
        x: LEFT + column * step,
        y: y + 3,
        width: Math.max(2, step),
        height: ROW - 6,
        class: "lab-matrix-broken",
      }),
    ),
    svg("title", {}, `${label}: ${verdict}`),
  ];
}

function axis(view, bottom, step) {
  const every = Math.max(1, Math.ceil(view.numbers.length / 12));
  const ticks = view.numbers.map((number, at) => [number, at]).filter(([, at]) => at % every === 0);
  return ticks.map(([number, at]) =>
    svg("text", { x: LEFT + (at + 0.5) * step, y: bottom + 15, class: "lab-matrix-tick" }, String(number)),
  );
}

function picture(words, view, hatch) {
  const step = WIDE / Math.max(1, view.numbers.length);
  const below = TOP + view.rows.length * ROW;
  const bottom = below + 20;
  const height = bottom + 12 + view.invariants.length * ROW;
  return svg(
    "svg",
    { viewBox: `0 0 ${LEFT + WIDE + 12} ${height}`, role: "img", "aria-label": words.title },
    pattern(hatch),
    svg("text", { x: 0, y: 15, class: "lab-matrix-says" }, words.phase),
    ...phases(view, step),
    ...view.rows.flatMap((one, at) => row(view, one, at, step, hatch)),
    svg("path", { d: `M0 ${below}H${LEFT + WIDE}`, class: "lab-matrix-line" }),
    ...axis(view, below, step),
    ...view.invariants.map((one, at) => svg("g", {}, ...invariant(one, at, bottom + 8, step))),
  );
}

function table(words, view) {
  const head = ["", words.times, words.operations].map((one) =>
    one ? h("th", { scope: "col" }, one) : h("td"),
  );
  const verdicts = view.rows.map(({ label, times, operations }) =>
    h("tr", {}, h("th", { scope: "row" }, label), h("td", {}, String(times)), h("td", {}, operations)),
  );
  const held = view.invariants.map(({ label, verdict }) =>
    h("tr", {}, h("th", { scope: "row" }, label), h("td", { colSpan: 2 }, verdict)),
  );
  return h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...verdicts, ...held));
}

function render({ model, el }) {
  const words = model.get("words");
  const hatch = uniqueId("lab-stops");
  const frame = h("div", {
    className: "lab-picture-frame lab-matrix",
    tabIndex: 0,
    ...OWN_KEYS,
    role: "group",
    "aria-label": words.frame,
  });
  const legend = h(
    "ul",
    { className: "lab-legend" },
    ...Object.entries(SIGNS).map(([kind, sign]) => h("li", {}, `${sign} ${words[kind]}`)),
  );
  const told = h("details", {}, h("summary", {}, words.told));
  el.append(
    h(
      "figure",
      { className: "lab lab-picture" },
      h("figcaption", {}, words.title),
      frame,
      h("p", { className: "lab-axis" }, words.axis),
      legend,
      told,
    ),
  );
  return follow(model, ["view"], () => {
    const view = model.get("view");
    frame.replaceChildren(picture(words, view, hatch));
    told.replaceChildren(told.firstChild, table(words, view));
  });
}

export default { render };
