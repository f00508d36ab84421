import { follow, h, svg } from "./dom.js";

const [WIDTH, HEIGHT] = [900, 132];
const [BOX, TOP, TALL] = [144, 28, 54];
const GAP = (WIDTH - 5 * BOX - 8) / 4;

const left = (at) => 4 + at * (BOX + GAP);

/** One phase: where it is now is said by a heavy frame, a filled box, a word above it, and to screen readers. */
function box(words, { code, label, place }, at) {
  const x = left(at);
  const middle = x + BOX / 2;
  return svg(
    "g",
    {
      class: `lab-phase lab-phase-${place}`,
      role: "listitem",
      ...(place === "now" ? { "aria-current": "step" } : {}),
    },
    svg("rect", { x, y: TOP, width: BOX, height: TALL, rx: 6 }),
    svg("text", { x: middle, y: TOP + 23, class: "lab-phase-code" }, (place === "past" ? "✓ " : "") + code),
    svg("text", { x: middle, y: TOP + 42 }, label),
    ...(place === "now" ? [svg("text", { x: middle, y: 18, class: "lab-phase-now" }, `▼ ${words.now}`)] : []),
  );
}

function arrow(at) {
  const [from, to, y] = [left(at) + BOX, left(at + 1), TOP + TALL / 2];
  return svg("path", {
    d: `M${from + 4} ${y}H${to - 4}m-5 -4l5 4l-5 4`,
    class: "lab-phase-arrow",
    "aria-hidden": "true",
  });
}

/** What may follow from a stretch of phases, below a bracket. */
function zone({ start, to, text, lit }) {
  const [x, right, y] = [left(start) + 4, left(to) + BOX - 4, TOP + TALL + 8];
  return svg(
    "g",
    { class: `lab-zone${lit ? " lab-zone-lit" : ""}`, "aria-hidden": "true" },
    svg("path", { d: `M${x} ${y}v6H${right}v-6` }),
    svg("text", { x: (x + right) / 2, y: y + 24 }, text),
  );
}

function picture(words, { phases, zones, sentence }) {
  const list = svg(
    "g",
    { role: "list", "aria-label": words.title },
    ...phases.map((one, at) => box(words, one, at)),
  );
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": sentence || words.title },
    ...phases.slice(1).map((_, at) => arrow(at)),
    list,
    ...zones.map(zone),
  );
}

function render({ model, el }) {
  const words = model.get("words");
  const frame = h("div", { className: "lab-phases" });
  const line = h("p", { className: "lab-phase-sentence", role: "status" });
  el.append(h("div", { className: "lab" }, frame, line));
  return follow(model, ["view"], () => {
    const view = model.get("view");
    if (!view.phases) return;
    frame.replaceChildren(picture(words, view));
    frame.dataset.phase = view.lit;
    line.textContent = view.sentence;
    line.className = `lab-phase-sentence lab-is-${view.mark}`;
  });
}

export default { render };
