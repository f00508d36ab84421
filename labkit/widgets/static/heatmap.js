import { follow, h, svg } from "./dom.js";

const WIDTH = 760;
const ROW = 34;
const HATCH = { torn: "M0 6L6 0", refused: "M0 0L6 6M0 6L6 0", lost: "M0 3H6", wrong: "M3 0V6" };

/** Verdicts differ in pattern as well as in colour. */
function patterns(prefix) {
  return svg(
    "defs",
    {},
    ...Object.entries(HATCH).map(([verdict, d]) =>
      svg(
        "pattern",
        { id: `${prefix}-${verdict}`, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
        svg("path", { d, class: "lab-hatch" }),
      ),
    ),
  );
}

function strip({ name, runs }, positions, prefix) {
  const scale = WIDTH / Math.max(1, positions);
  const narrowLast = [...runs].sort((a, b) => b.end - b.start - (a.end - a.start));
  const cells = narrowLast.map(({ start, end, verdict, label }) => {
    const width = Math.max((end - start) * scale, 2.5); // a single byte must stay visible
    const box = { x: ((start + end) * scale - width) / 2, y: 0, width, height: ROW - 8 };
    const title = svg("title", {}, label);
    const fill = svg("rect", { ...box, class: `lab-heat lab-heat-${verdict}` }, title);
    return HATCH[verdict]
      ? [fill, svg("rect", { ...box, fill: `url(#${prefix}-${verdict})`, "pointer-events": "none" })]
      : [fill];
  });
  return h(
    "div",
    { className: "lab-strip" },
    h("span", { className: "lab-strip-name" }, name),
    svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${ROW - 8}`,
        preserveAspectRatio: "none",
        height: ROW - 8,
        "aria-hidden": "true",
      },
      patterns(prefix),
      ...cells.flat(),
    ),
  );
}

function render({ model, el }) {
  const prefix = `lab-heat-${Math.random().toString(36).slice(2, 8)}`;
  const strips = h("div", { role: "img" });
  const legend = h("ul", { className: "lab-legend" });
  const body = h("tbody");
  const words = model.get("words");
  const head = h("thead");
  el.append(
    h(
      "figure",
      { className: "lab lab-picture" },
      h("figcaption", {}, words.title),
      strips,
      h("p", { className: "lab-axis" }, words.axis),
      legend,
      h("details", {}, h("summary", {}, words.told), h("table", {}, head, body)),
    ),
  );
  strips.setAttribute("aria-label", words.title);

  return follow(model, ["view"], () => {
    const view = model.get("view");
    strips.replaceChildren(...view.rows.map((one, at) => strip(one, view.positions, `${prefix}-${at}`)));
    legend.replaceChildren(
      ...view.verdicts.map(([verdict, label]) =>
        h(
          "li",
          {},
          svg(
            "svg",
            { width: 22, height: 14, "aria-hidden": "true" },
            patterns(`${prefix}-l-${verdict}`),
            svg("rect", { width: 22, height: 14, class: `lab-heat lab-heat-${verdict}` }),
            svg("rect", {
              width: 22,
              height: 14,
              fill: HATCH[verdict] ? `url(#${prefix}-l-${verdict}-${verdict})` : "none",
            }),
          ),
          ` ${label}`,
        ),
      ),
    );
    head.replaceChildren(
      h(
        "tr",
        {},
        ...["", ...view.verdicts.map(([, label]) => label)].map((one) =>
          one ? h("th", { scope: "col" }, one) : h("td"),
        ),
      ),
    );
    body.replaceChildren(
      ...view.rows.map(({ name, counts }) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, name),
          ...view.verdicts.map(([verdict]) => h("td", {}, String(counts[verdict] ?? 0))),
        ),
      ),
    );
  });
}

export default { render };
