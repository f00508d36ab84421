import { OWN_KEYS, follow, h, uniqueId } from "./dom.js";

/** Chooses one operation of a round. A strip shows in which phase it falls; what it does is said in words. */
function render({ model, el }) {
  const id = uniqueId("lab-dial");
  const range = h("input", { type: "range", id, min: 1, step: 1, ...OWN_KEYS });
  const exact = h("input", {
    type: "number",
    min: 1,
    step: 1,
    "aria-label": model.get("label"),
    ...OWN_KEYS,
  });
  const strip = h("div", { className: "lab-dial-strip", "aria-hidden": "true" });
  const said = h("p", { className: "lab-dial-said" });
  const controls = h(
    "div",
    { className: "lab-slider" },
    h("label", { for: id }, model.get("label")),
    range,
    exact,
  );
  el.append(h("div", { className: "lab lab-dial" }, controls, strip, said));

  function say() {
    const { operations, sentence } = model.get("view");
    const text = operations?.[Number(range.value) - 1];
    said.textContent = text ?? sentence ?? "";
    if (text) range.setAttribute("aria-valuetext", text);
  }
  function choose(event) {
    const value = Number(event.target.value);
    if (event.target.value === "" || value < 1 || value > model.get("high")) return;
    for (const input of [range, exact]) if (input !== event.target) input.value = String(value);
    say();
    model.set("value", value);
    model.save_changes();
  }
  range.addEventListener("input", choose);
  exact.addEventListener("input", choose);

  const stop = follow(model, ["high", "value", "view"], () => {
    const { zones = [] } = model.get("view");
    const high = model.get("high");
    for (const input of [range, exact]) {
      input.max = String(Math.max(1, high));
      input.disabled = high === 0;
      if (document.activeElement !== exact || input !== exact) input.value = String(model.get("value"));
    }
    strip.hidden = zones.length === 0;
    strip.replaceChildren(
      ...zones.map(({ size, text }) => h("span", { style: `flex: ${size} ${size} 0` }, text)),
    );
    say();
  });
  model.set("seen", true); // counting costs a round on a copy: only for somebody who looks
  model.save_changes();
  return stop;
}

export default { render };
