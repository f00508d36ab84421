import { OWN_KEYS, follow, h } from "./dom.js";

/** The tree of a folder: files are buttons, and every change has a word beside its colour. */
function entry(choose, { path, kind, size, change, badge }, chosen) {
  const depth = path.split("/").length - 1;
  const name = path.split("/").at(-1);
  const label = kind === "folder" ? `${name}/` : name;
  const content =
    kind === "folder"
      ? h("span", { className: "lab-folder" }, label)
      : h(
          "button",
          { type: "button", "aria-current": path === chosen ? "true" : null, onclick: () => choose(path) },
          label,
        );
  return h(
    "li",
    { className: `lab-is-${change}`, style: `padding-left: ${depth * 16}px`, "data-path": path },
    content,
    size ? h("span", { className: "lab-size" }, size) : null,
    badge ? h("span", { className: "lab-badge" }, badge) : null,
  );
}

/** Puts entries into a list and touches only what differs: a lab may hold a thousand files. */
function updater(list, choose) {
  let rows = new Map();
  return (entries, shown) => {
    const next = new Map();
    for (const one of entries) {
      const key = `${one.path === shown} ${JSON.stringify(one)}`;
      const before = rows.get(one.path);
      next.set(one.path, before?.key === key ? before : { key, item: entry(choose, one, shown) });
    }
    const kept = new Set([...next.values()].map(({ item }) => item));
    let at = list.firstChild;
    const skipStale = () => {
      while (at && !kept.has(at)) {
        const stale = at;
        at = at.nextSibling;
        stale.remove();
      }
    };
    for (const { item } of next.values()) {
      skipStale();
      if (item === at) at = at.nextSibling;
      else list.insertBefore(item, at);
    }
    skipStale();
    rows = next;
  };
}

const SIGNS = { new: "+", gone: "−", same: " " };

function line({ number, text, change }) {
  return h(
    "tr",
    { className: `lab-is-${change}` },
    h("td", { className: "lab-sign" }, SIGNS[change]),
    number ? h("th", { scope: "row" }, String(number)) : h("td"),
    h("td", { className: "lab-content" }, text),
  );
}

function render({ model, el }) {
  const words = model.get("words");
  const list = h("ul");
  const title = h("p", { className: "lab-caption" });
  const note = h("p");
  const body = h("tbody");
  const scroller = h(
    "div",
    { className: "lab-scroll", tabIndex: 0, ...OWN_KEYS, role: "group", "aria-label": words.content },
    h("table", {}, body),
  );
  const following = h("input", { type: "checkbox" });
  const tree = h("div", { className: "lab-tree" }, list, h("label", {}, following, ` ${words.follow}`));
  el.append(
    h(
      "div",
      { className: "lab lab-files", role: "group", "aria-label": words.title },
      tree,
      h("div", { className: "lab-file" }, title, note, scroller),
    ),
  );

  function choose(path) {
    model.set("chosen", path);
    model.save_changes();
  }
  const update = updater(list, choose);
  following.addEventListener("change", () => choose(following.checked ? "" : model.get("view").shown));

  return follow(model, ["view"], () => {
    const view = model.get("view");
    if (!view.entries) return;
    const focused = list.contains(document.activeElement)
      ? document.activeElement.closest("li").dataset.path
      : null;
    update(view.entries, view.shown);
    if (focused && !list.contains(document.activeElement))
      list.querySelector(`[data-path="${CSS.escape(focused)}"] button`)?.focus();
    following.checked = !view.pinned;
    title.textContent = view.shown || view.sentence;
    note.textContent = view.note;
    body.replaceChildren(...view.lines.map(line));
    scroller.hidden = view.lines.length === 0;
  });
}

export default { render };
