// The garden's shelf: every search looks here unless it is given another one.
export const books = [
  { title: "Computer Systems", author: "Randal Bryant" },
  { title: "Operating Systems", author: "Remzi Arpaci-Dusseau" },
  { title: "编译原理", author: "Alfred Aho" },
  { title: "流畅的 Python", author: "Luciano Ramalho" },
  { title: "The C Programming Language", author: "Brian W. Kernighan" },
];
