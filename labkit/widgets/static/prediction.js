import { OWN_KEYS, follow, h, uniqueId } from "./dom.js";

/** A question that is answered before the cell runs: by choosing, or by writing where there are no options. */
function render({ model, el }) {
  const name = uniqueId("lab-prediction");
  const words = model.get("words");
  const options = model.get("options");
  const inputs = options.length
    ? options.map(([value]) => h("input", { type: "radio", name, value, ...OWN_KEYS }))
    : [h("input", { type: "text", "aria-label": words.answer })];
  const choices = options.length
    ? options.map(([, label], at) => h("label", {}, inputs[at], ` ${label}`))
    : inputs;
  const verdict = h("p", { role: "status" });
  el.append(
    h(
      "fieldset",
      { className: "lab lab-prediction" },
      h("legend", {}, h("span", { className: "lab-tag" }, words.tag), ` ${model.get("question")}`),
      h("div", { className: "lab-options" }, ...choices),
      verdict,
    ),
  );
  for (const input of inputs) {
    input.addEventListener("change", () => {
      model.set("answer", input.value);
      model.save_changes();
    });
  }

  return follow(model, ["answer", "verdict"], () => {
    for (const input of inputs) {
      if (options.length) input.checked = input.value === model.get("answer");
      else input.value = model.get("answer");
    }
    const { mark, text } = model.get("verdict");
    verdict.className = `lab-note lab-is-${mark}`;
    verdict.textContent = text;
  });
}

export default { render };
