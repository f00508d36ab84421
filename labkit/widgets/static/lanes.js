import { OWN_KEYS, follow, h, svg } from "./dom.js";

const WIDEST = 820;
const LANE = 62;
const LEFT = 28;

function bar({ lane, kind, began, ended, word, number }, left, tick) {
  const isCall = kind === "call";
  const x = left + began * tick;
  const width = Math.max(1, ended - began) * tick;
  const y = 34 + lane * LANE + (isCall ? 0 : 6);
  const height = isCall ? LANE - 14 : LANE - 26;
  return svg(
    "g",
    { class: `lab-bar lab-${kind}` },
    svg("rect", { x, y, width, height, rx: 3 }),
    ...(isCall
      ? [svg("text", { x: x + width - 4, y: y + height / 2 + 4, "text-anchor": "end" }, `${word} ${number}`)]
      : [word, number].map((text, at) =>
          svg(
            "text",
            { x: x + width / 2, y: y + height / 2 - 3 + 15 * at, "text-anchor": "middle" },
            String(text),
          ),
        )),
  );
}

function picture(view) {
  const left = LEFT + 8 * Math.max(...view.names.map((name) => name.length));
  const tick = Math.min(48, (WIDEST - left - 10) / view.ticks);
  const width = left + view.ticks * tick + 10;
  const height = 40 + view.names.length * LANE;
  const names = view.names.map((name, at) =>
    svg("text", { x: 4, y: 34 + at * LANE + 28, class: "lab-lane-name" }, name),
  );
  const [calls, steps] = [true, false].map((is) => view.bars.filter((one) => (one.kind === "call") === is));
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": view.title },
    svg("text", { x: left, y: 16 }, view.axis),
    svg("path", { d: `M${left} 24H${width - 4}m-5 -4l5 4l-5 4`, class: "lab-arrow" }),
    ...[...calls, ...steps].map((one) => bar(one, left, tick)),
    ...names,
  );
}

function render({ model, el }) {
  const frame = h("div", { className: "lab-picture-frame", tabIndex: 0, ...OWN_KEYS, role: "group" });
  const told = h("ol");
  const words = model.get("words");
  el.append(
    h(
      "figure",
      { className: "lab lab-picture" },
      h("figcaption", {}, model.get("view").title),
      frame,
      h("details", {}, h("summary", {}, words.told), told),
    ),
  );
  frame.setAttribute("aria-label", words.frame);
  return follow(model, ["view"], () => {
    const view = model.get("view");
    frame.replaceChildren(picture(view));
    told.replaceChildren(...view.told.map((one) => h("li", {}, one)));
  });
}

export default { render };
