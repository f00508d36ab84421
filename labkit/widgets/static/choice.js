import { OWN_KEYS, follow, h, uniqueId } from "./dom.js";

/** One of a few named options. */
function render({ model, el }) {
  const name = uniqueId("lab-choice");
  const radios = model.get("options").map(([value, label]) => {
    const radio = h("input", { type: "radio", name, value, ...OWN_KEYS });
    radio.addEventListener("change", () => {
      model.set("value", value);
      model.save_changes();
    });
    return { radio, item: h("label", {}, radio, ` ${label}`) };
  });
  el.append(
    h(
      "fieldset",
      { className: "lab lab-choice" },
      h("legend", {}, model.get("label")),
      ...radios.map((one) => one.item),
    ),
  );

  return follow(model, ["value"], () => {
    for (const { radio } of radios) radio.checked = radio.value === model.get("value");
  });
}

export default { render };
