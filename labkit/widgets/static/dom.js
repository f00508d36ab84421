// What every widget script shares. Loaded by `parts.script`, which writes it in place of the import.

/** Make an element; `props` that start with "data-" or "aria-" or are named "role", "for", "class" become attributes. */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name in element && !name.includes("-")) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** For elements that use the arrow keys themselves: JupyterLab would take them to move between cells. */
export const OWN_KEYS = { "data-lm-suppress-shortcuts": "true" };

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

/** Make an SVG element. */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG_NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

let made = 0;

/** An id that no other element of this page has. */
export function uniqueId(prefix) {
  made += 1;
  return `${prefix}-${made}-${Math.random().toString(36).slice(2, 8)}`;
}

/** Draw now and whenever one of the traits changes; return what anywidget calls when the view goes. */
export function follow(model, traits, draw) {
  const events = traits.map((trait) => `change:${trait}`).join(" ");
  model.on(events, draw);
  draw();
  return () => model.off(events, draw);
}
