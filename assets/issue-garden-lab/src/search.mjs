import { books } from "./books.mjs";

/** The form in which two texts are compared: what this function leaves out, a reader may type or not. */
export function normalizeText(text) {
  return text.toLowerCase().replaceAll(" ", "");
}

function search(field, query, shelf) {
  const wanted = normalizeText(query);
  if (wanted === "") return [];
  return shelf.filter((book) => normalizeText(book[field]).includes(wanted));
}

/** Books whose title contains the query. A query with nothing in it finds nothing. */
export function searchByTitle(query, shelf = books) {
  return search("title", query, shelf);
}

/** Books whose author contains the query. A query with nothing in it finds nothing. */
export function searchByAuthor(query, shelf = books) {
  return search("author", query, shelf);
}
