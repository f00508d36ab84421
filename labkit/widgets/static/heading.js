import { follow, h } from "./dom.js";

/** What the controls below it are for. */
function render({ model, el }) {
  const heading = h("p", { className: "lab-heading" });
  el.append(h("div", { className: "lab" }, heading));
  return follow(model, ["text"], () => {
    heading.textContent = model.get("text");
  });
}

export default { render };
