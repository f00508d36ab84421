import { OWN_KEYS, follow, h } from "./dom.js";

/** The counterexamples there are; the one that is opened is marked. Only what differs is drawn anew, so that focus stays. */
function render({ model, el }) {
  const words = model.get("words");
  const note = h("p");
  const list = h("ul", { className: "lab-findings" });
  const box = h("div", { className: "lab-scroll", tabIndex: 0, ...OWN_KEYS, role: "group", "aria-label": words.title }, list);
  el.append(h("div", { className: "lab lab-found" }, h("p", { className: "lab-caption" }, words.title), note, box));

  function item({ id, broken, text }) {
    const open = h("button", { type: "button", "data-id": id, ...OWN_KEYS }, h("code", {}, id));
    open.addEventListener("click", () => {
      model.set("chosen", id);
      model.save_changes();
    });
    return h("li", {}, open, ...broken.map((one) => h("span", { className: "lab-badge" }, one)), h("span", {}, text));
  }

  let drawn = "";
  return follow(model, ["view", "chosen"], () => {
    const { items = [], sentence = "" } = model.get("view");
    note.textContent = sentence;
    if (JSON.stringify(items) !== drawn) {
      const focused = list.contains(document.activeElement) ? document.activeElement.dataset.id : "";
      list.replaceChildren(...items.map(item));
      drawn = JSON.stringify(items);
      list.querySelector(`[data-id="${focused}"]`)?.focus();
    }
    for (const button of list.querySelectorAll("button")) {
      const open = button.dataset.id === model.get("chosen");
      if (open) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  });
}

export default { render };
