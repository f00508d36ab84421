import assert from "node:assert/strict";
import test from "node:test";

import { searchByAuthor } from "../src/search.mjs";

test("a full-width comma between two names finds the author", () => {
  assert.deepEqual(searchByAuthor("Randal，Bryant").map((book) => book.title), ["Computer Systems"]);
});

test("a name typed without its hyphen or its full stop finds the author", () => {
  assert.deepEqual(searchByAuthor("Arpaci Dusseau").map((book) => book.title), ["Operating Systems"]);
  assert.deepEqual(searchByAuthor("brian w kernighan").map((book) => book.title), ["The C Programming Language"]);
});
