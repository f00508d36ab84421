import { follow, h } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const TICK = 44;
const LANE = 62;
const LEFT = 70;

/** Make an SVG element. */
export function s(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

function bar({ lane, kind, began, ended, label }) {
  const isCall = kind === "call";
  const x = LEFT + began * TICK;
  const width = Math.max(1, ended - began) * TICK;
  const y = 34 + lane * LANE + (isCall ? 0 : 6);
  const height = isCall ? LANE - 14 : LANE - 26;
  return s(
    "g",
    { class: `lab-bar lab-${kind}` },
    s("rect", { x, y, width, height, rx: 3 }),
    ...(isCall ? [] : [s("text", { x: x + width / 2, y: y + height / 2 + 4, "text-anchor": "middle" }, label)]),
  );
}

function picture(view) {
  const width = LEFT + view.ticks * TICK + 10;
  const height = 40 + view.names.length * LANE;
  const names = view.names.map((name, at) => s("text", { x: 0, y: 34 + at * LANE + 28, class: "lab-lane-name" }, name));
  const calls = view.bars.filter((one) => one.kind === "call");
  const steps = view.bars.filter((one) => one.kind !== "call");
  return s(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": view.title },
    s("text", { x: LEFT, y: 16, class: "lab-axis" }, view.axis),
    s("path", { d: `M${LEFT} 24H${width - 6}m-5 -4l5 4l-5 4`, class: "lab-arrow" }),
    ...calls.map(bar),
    ...steps.map(bar),
    ...names,
  );
}

function render({ model, el }) {
  const frame = h("div", { className: "lab-picture-frame", tabIndex: 0, role: "region" });
  const told = h("ol");
  const words = model.get("words");
  el.append(
    h("figure", { className: "lab lab-picture" }, h("figcaption", {}, model.get("view").title), frame, h("details", {}, h("summary", {}, words.told), told)),
  );
  frame.setAttribute("aria-label", words.frame);
  return follow(model, ["view"], () => {
    const view = model.get("view");
    frame.replaceChildren(picture(view));
    told.replaceChildren(...view.told.map((one) => h("li", {}, one)));
  });
}

export default { render };
