// @ts-check
"use strict";
// The script of the page. It decodes the data blocks, and draws the views. Text from the profile reaches the document
// through textContent alone. docs/formats/page.md describes the blocks.

/** @typedef {{text: string, ends: Uint32Array, count: number}} Strings */
/** @typedef {{title: string, unit: string, temperature: boolean, note: string}} FlameFacts */
/** @typedef {{old: string, new: string, moved: string | null, columns: string[], shares: boolean, count: number}} DiffFacts */
/** @typedef {{schema: number, file: string, kind: string, functions: number, total: number, unit: string,
 *   titles: {entry: string, sum: string, max: string}, heat: boolean, detail: string, parts: string,
 *   flame: FlameFacts | null, contexts: number, traces: number, order: number,
 *   startup: string[], diff: DiffFacts | null, kinds: string[], source: {title: string, note: string} | null}} Facts */

const ROW = 28;
const doc = document;
const { abs, floor, max, min, round } = Math;
const $ = (/** @type {string} */ id) => /** @type {HTMLElement} */ (doc.getElementById(id));
const main = $("main");

/**
 * Sets an attribute, or removes it if the value is null.
 * @param {Element} element
 * @param {string} name
 * @param {string | number | boolean | null} value
 */
const set = (element, name, value) => (value === null ? element.removeAttribute(name) : element.setAttribute(name, String(value)));

/**
 * Makes an element.
 * @param {string} what a tag, or a tag and a class: `p.status`
 * @param {Record<string, any>} [props]
 * @param {...(Node | string | null)} children
 * @returns {any}
 */
function h(what, props = {}, ...children) {
  const [tag, className] = what.split(".");
  const element = doc.createElement(tag);
  if (className) element.className = className;
  for (const [key, value] of Object.entries(props)) {
    if (key.startsWith("on")) on(element, key.slice(2), value);
    else if (key in element) /** @type {any} */ (element)[key] = value;
    else set(element, key, value);
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

/**
 * @param {EventTarget} target
 * @param {string} name
 * @param {(event: any) => void} act
 */
const on = (target, name, act) => target.addEventListener(name, act);

// ---- data blocks

/**
 * @param {string} id
 * @returns {Promise<Uint8Array>}
 */
async function block(id) {
  const element = $("b-" + id);
  if (!element) return new Uint8Array(0);
  const packed = atob(element.textContent || "");
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  element.textContent = "";
  const stream = new Blob([bytes]).stream().pipeThrough(new (/** @type {any} */ (globalThis).DecompressionStream)("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads numbers of LEB128 form one after the other. */
class Reader {
  /**
   * @param {Uint8Array} bytes
   * @param {number} [at]
   */
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }
  /** A number above 2^53 is rounded. */
  next() {
    let value = 0, scale = 1;
    for (;;) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (!(byte & 128)) return value;
      scale *= 128;
    }
  }
  done() {
    return this.at >= this.bytes.length;
  }
  /**
   * A list with its length before it.
   * @template T
   * @param {() => T} one
   */
  list(one) {
    return Array.from({ length: this.next() }, one);
  }
}

/**
 * @param {Uint8Array} bytes
 * @param {number} count
 */
function numbers(bytes, count) {
  const reader = new Reader(bytes);
  const list = new Float64Array(count);
  for (let i = 0; i < count && !reader.done(); i++) list[i] = reader.next();
  return list;
}

/**
 * Subtracts differences, whose lowest bit is the sign.
 * @param {Float64Array} from
 * @param {Float64Array} by
 */
function less(from, by) {
  for (let i = 0; i < from.length; i++) from[i] -= by[i] % 2 ? -(by[i] - 1) / 2 : by[i] / 2;
}

/**
 * Decodes strings that share the beginning with the string before.
 * @param {Uint8Array} bytes
 * @returns {Strings}
 */
function strings(bytes) {
  const reader = new Reader(bytes);
  const count = reader.done() ? 0 : reader.next();
  const size = count ? reader.next() : 0;
  const text = new Uint8Array(size);
  let from = 0, to = 0;
  for (let i = 0; i < count; i++) {
    const shared = reader.next(), own = reader.next();
    text.copyWithin(to, from, from + shared);
    text.set(bytes.subarray(reader.at, reader.at + own), to + shared);
    reader.at += own;
    from = to;
    to += shared + own;
    text[to++] = 10;
  }
  const joined = new TextDecoder().decode(text);
  const ends = new Uint32Array(count);
  for (let i = 0, at = -1; i < count; i++) ends[i] = at = joined.indexOf("\n", at + 1);
  return { text: joined, ends, count };
}

/**
 * @param {Strings} list
 * @param {number} i
 */
function string(list, i) {
  return i < list.count ? list.text.slice(i ? list.ends[i - 1] + 1 : 0, list.ends[i]) : "";
}

/**
 * The offsets at which the details of each function begin.
 * @param {Uint8Array} bytes
 * @param {number} count
 */
function offsets(bytes, count) {
  const sizes = new Reader(bytes);
  const list = new Uint32Array(count);
  for (let i = 0, at = 0; i < count; i++) {
    list[i] = at;
    at += sizes.next();
  }
  return list;
}

// ---- text

const plain = new Intl.NumberFormat("en");
/** @param {number} n */
const grouped = (n) => (n > Number.MAX_SAFE_INTEGER ? "≈ " : "") + plain.format(n);
/**
 * @param {number} part
 * @param {number} whole
 */
const percent = (part, whole) => {
  const tenths = whole ? round((1000 * part) / whole) : 0;
  if (!tenths && part && whole) return "<0.1%";
  return tenths === 1000 && part < whole ? ">99.9%" : (tenths / 10).toFixed(1) + "%";
};
/**
 * The last part of a path.
 * @param {string} path
 */
const baseName = (path) => path.split(/[/\\]/).pop() || path;

/**
 * Splits a name at the `::` that are not inside brackets.
 * @param {string} name
 * @returns {string[]}
 */
function pathOf(name) {
  const local = /^([^\s<>(;:]+\.\w+)[;:](?!:)/.exec(name);
  if (local) return pathOf(name.slice(local[0].length));
  const parts = [];
  let depth = 0, start = 0;
  if (name.startsWith("<")) {
    // `<Type as Trait>::method`: the path is that of the type.
    const inner = name.slice(1).replace(/^(&|mut |\*const |\*mut )+/, "");
    const end = inner.search(/ as |>::/);
    if (end > 0) return [...pathOf(inner.slice(0, end)), name];
  }
  for (let i = 0; i < name.length; i++) {
    const c = name[i];
    if ("<({[".includes(c)) depth++;
    else if (">)}]".includes(c)) depth--;
    else if (c === ":" && name[i + 1] === ":" && depth <= 0) {
      parts.push(name.slice(start, i));
      start = i + 2;
      i++;
    } else if (c === " " && depth <= 0 && !parts.length) start = i + 1;
  }
  parts.push(name.slice(start));
  return parts;
}

// ---- the profile

class Profile {
  /** @param {Facts} facts */
  constructor(facts) {
    this.facts = facts;
    this.count = facts.functions;
    /** @type {Map<string, Promise<any>>} */
    this.cache = new Map();
    /** @type {Map<string, Uint32Array>} */
    this.orders = new Map();
    this.names = strings(new Uint8Array(0));
    this.lower = "";
    this.entry = this.sum = this.max = new Float64Array(0);
    /** @type {Uint8Array} */
    this.flags = new Uint8Array(0);
    /** The numbers of rows: the instances of a Rust function are one row, that of the first. @type {Map<number, {sum: number, entry: number, max: number, band: number, count: number}>} */
    this.united = new Map();
    this.rows = new Uint32Array(0);
  }
  /**
   * @template T
   * @param {string} key
   * @param {() => Promise<T>} make
   * @returns {Promise<T>}
   */
  once(key, make) {
    let value = this.cache.get(key);
    if (!value) this.cache.set(key, (value = make()));
    return value;
  }
  async load() {
    const [names, entry, sum, max, flags] = await Promise.all(
      ["names", "entry", "sum", "max", "flags"].map((id) => block(id)));
    this.names = strings(names);
    this.sum = numbers(sum, this.count);
    this.max = this.sum.slice();
    less(this.max, numbers(max, this.count));
    this.entry = this.max.slice();
    less(this.entry, numbers(entry, this.count));
    this.flags = flags;
    this.lower = this.names.text.toLowerCase();
    if (this.lower.length !== this.names.text.length) this.lower = this.names.text;
    const rows = [];
    for (let i = 0, to = 0; i < this.count; i = to) {
      rows.push(i);
      to = i + 1;
      if (!(flags[i] & 32)) continue;
      const name = this.name(i), all = { sum: this.sum[i], entry: this.entry[i], max: this.max[i], band: this.band(i), count: 1 };
      for (; to < this.count && flags[to] & 32 && this.name(to) === name; to++) {
        all.sum += this.sum[to];
        all.entry += this.entry[to];
        all.max = Math.max(all.max, this.max[to]);
        all.band = Math.max(all.band, this.band(to));
        all.count++;
      }
      if (all.count > 1) this.united.set(i, all);
    }
    this.rows = Uint32Array.from(rows);
  }
  /**
   * A number of a row.
   * @param {number} i
   * @param {"sum" | "entry" | "max"} key
   */
  of(i, key) {
    return this.united.get(i)?.[key] ?? this[key][i];
  }
  /** @param {number} i */
  instances(i) {
    return this.united.get(i)?.count ?? 1;
  }
  /** @param {number} i */
  name(i) {
    return string(this.names, i);
  }
  /**
   * 0 never, 1 cold, 2 warm, 3 hot.
   * @param {number} i
   */
  band(i) {
    return (this.flags[i] >> 3) & 3;
  }
  /**
   * All rows in an order.
   * @param {string} key
   * @param {boolean} up
   * @returns {Uint32Array}
   */
  order(key, up) {
    const id = key + up;
    let order = this.orders.get(id);
    if (order) return order;
    order = this.rows.slice();
    if (key !== "name") {
      sorted(order, (i) => this.of(i, /** @type {any} */ (key)), up);
    } else if (!up) order.reverse();
    this.orders.set(id, order);
    return order;
  }
  /**
   * Marks the functions whose name contains a text, or matches a /pattern/.
   * @param {string} query
   * @param {Strings} [list] other names than those of the functions
   */
  matches(query, list) {
    const names = list || this.names;
    const mask = new Uint8Array(names.count);
    const pattern = /^\/(.+)\/$/.exec(query);
    if (pattern) {
      const regex = new RegExp(pattern[1], "i");
      for (let i = 0; i < names.count; i++) if (regex.test(string(names, i))) mask[i] = 1;
      return mask;
    }
    const lower = query.toLowerCase();
    // Capital letters in the query are searched as they are.
    const text = lower !== query ? names.text : list ? names.text.toLowerCase() : this.lower;
    let i = 0;
    for (let at = text.indexOf(query); at >= 0 && i < names.count; at = text.indexOf(query, names.ends[i - 1])) {
      while (names.ends[i] < at) i++;
      mask[i++] = 1;
    }
    return mask;
  }
  /**
   * The index of the first function with a name; -1 if there is none.
   * @param {string} name
   */
  find(name) {
    let low = 0, high = this.count;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.name(mid) < name) low = mid + 1;
      else high = mid;
    }
    return low < this.count && this.name(low) === name ? low : -1;
  }
  /**
   * The details of a function, as a reader at their start.
   * @param {string} id
   * @param {number} i
   */
  async detail(id, i) {
    const [bytes, starts] = await this.once("d" + id, async () => {
      const [bytes, sizes] = await Promise.all([block(id), block(id + "-sizes")]);
      return [bytes, sizes.length ? offsets(sizes, this.count) : null];
    });
    return starts ? new Reader(bytes, starts[i]) : null;
  }
  /**
   * @param {string} id
   * @returns {Promise<Strings>}
   */
  strings(id) {
    return this.once("s" + id, async () => strings(await block(id)));
  }
  /**
   * The source files, and for each function the number of its file from 1, or 0.
   * @returns {Promise<[Strings, Float64Array]>}
   */
  async places() {
    return [await this.strings("files"), await this.once("file", async () => numbers(await block("file"), this.count))];
  }
}

const BANDS = [["never ran", "–"], ["cold", "C"], ["warm", "W"], ["hot", "H"]];

/** @param {number} band */
const badge = (band) => h("abbr", { className: "band b" + band, title: BANDS[band][0] }, BANDS[band][1]);
/**
 * @param {number} part
 * @param {number} whole
 */
const bar = (part, whole) => {
  const fill = h("span.fill", {});
  fill.style.width = (whole ? max(part > 0 ? 0.5 : 0, (100 * part) / whole) : 0) + "%";
  return h("span.bar", { "aria-hidden": "true" }, fill);
};
/**
 * A share with its bar.
 * @param {number} part
 * @param {number} whole
 * @param {number} [most] what fills the bar
 */
const share = (part, whole, most = whole) => h("span.share", {}, percent(part, whole), bar(part, most));
/** @param {...(Node | string)} text */
const note = (...text) => h("p.status", {}, ...text);
/** @param {string} text */
const part = (text) => h("h3", {}, text);
/**
 * @param {string} text
 * @param {() => void} onclick
 * @param {Record<string, any>} [props]
 */
const button = (text, onclick, props) => h("button", { type: "button", onclick, ...props }, text);
/** @param {...(Node | null)} children */
const tools = (...children) => h("div.tools", {}, ...children);
/** @param {string} name */
const linkTo = (name) => "#function/" + encodeURIComponent(name);
/**
 * The name of a function, as a link if the page has the function.
 * @param {string} name
 * @param {Record<string, any>} [props]
 */
const named = (name, props = {}) => (profile.find(name) >= 0 ? h("a", { href: linkTo(name), ...props }, name) : h("span", props, name));
/**
 * Sorts numbers of rows by a column.
 * @template {number[] | Uint32Array} L
 * @param {L} list
 * @param {(i: number) => number} column
 * @param {boolean} up
 * @returns {L}
 */
const sorted = (list, column, up) => /** @type {L} */ (list.sort((a, b) => (up ? column(a) - column(b) : column(b) - column(a)) || a - b));
/** @param {number} count */
const upTo = (count) => Array.from({ length: count }, (_, i) => i);
/**
 * A field for a text to search.
 * @param {string} label
 * @param {string} placeholder
 * @param {(text: string) => void} oninput
 * @param {string} [value]
 */
const search = (label, placeholder, oninput, value = "") => h("input", {
  type: "search", value, placeholder, "aria-label": label, spellcheck: false, oninput: (/** @type {any} */ event) => oninput(event.target.value),
});
/**
 * The rows whose names a search finds; null for all. Says in `status` if the pattern is wrong, and then returns undefined.
 * @param {HTMLElement} input
 * @param {string} query
 * @param {HTMLElement} status
 * @param {Strings} [list]
 */
function searched(input, query, status, list) {
  set(input, "aria-invalid", null);
  try {
    return query ? profile.matches(query, list) : null;
  } catch (error) {
    set(input, "aria-invalid", true);
    status.textContent = "The pattern is not complete: " + /** @type {Error} */ (error).message;
  }
}
/**
 * A choice of one of several values.
 * @param {string} label
 * @param {string[][]} list values with their titles
 * @param {(value: string) => void} set
 * @param {string} [chosen]
 */
const choice = (label, list, set, chosen) => h("select", { "aria-label": label, onchange: (/** @type {any} */ event) => set(event.target.value) },
  ...list.map(([value, title]) => h("option", { value, selected: value === chosen }, title)));

/**
 * A table in a frame that scrolls.
 * @param {string} kind `rows` or `auto`
 * @param {string} label
 * @param {Node[]} heads
 * @param {Node} body
 */
const framed = (kind, label, heads, body) => h("div.scroll " + kind, { tabIndex: 0, role: "region", "aria-label": label },
  h("table." + kind, { "aria-label": label }, h("thead", {}, h("tr", {}, ...heads)), body));

/**
 * A table. Only the rows in the window are elements. `as` has classes of a column; `sort` says that it can be sorted by.
 * @param {{label: string, columns: {key: string, title: string, as?: string}[], row: (index: number) => (Node | string)[], open?: (index: number) => void, sorted?: (key: string, up: boolean) => void, key?: string, up?: boolean}} spec
 */
function virtualTable(spec) {
  /** @type {ArrayLike<number>} */
  let list = [];
  let active = 0, key = spec.key || "", up = !!spec.up;
  const classOf = ({ as = "" }) => (as.startsWith("wide") ? as : "num " + as);
  const heads = spec.columns.map((column) => {
    const title = column.as?.includes("sort")
      ? button(column.title, () => sort(column.key))
      : h("span", {}, column.title);
    return h("th", { scope: "col", className: classOf(column) }, title);
  });
  const body = h("tbody");
  const frame = framed("rows", spec.label, heads, body), table = frame.firstChild;
  /** @param {string} wanted */
  function sort(wanted) {
    up = wanted === key ? !up : wanted === "name";
    key = wanted;
    mark();
    if (spec.sorted) spec.sorted(key, up);
  }
  function mark() {
    spec.columns.forEach((column, i) => set(heads[i], "aria-sort", column.key !== key ? null : up ? "ascending" : "descending"));
  }
  const space = (/** @type {number} */ rows) => {
    // One cell without a span: one that spans columns that the phone does not show would keep their width.
    const cell = h("td");
    cell.style.height = rows * ROW + "px";
    return h("tr.space", { "aria-hidden": "true" }, cell);
  };
  function draw() {
    const height = frame.clientHeight || 600;
    const first = max(0, floor(frame.scrollTop / ROW) - 10);
    const last = min(list.length, first + Math.ceil(height / ROW) + 20);
    const rows = first ? [space(first)] : [];
    for (let at = first; at < last; at++) {
      const cells = spec.row(list[at]);
      const row = h("tr", { "aria-rowindex": String(at + 2), className: at === active ? "active" : "" });
      cells.forEach((cell, i) => {
        const column = spec.columns[i];
        row.append(h("td", { className: classOf(column) }, cell));
      });
      on(row, "click", (/** @type {MouseEvent} */ event) => {
        active = at;
        if (spec.open && !(/** @type {HTMLElement} */ (event.target).closest("a"))) spec.open(list[at]);
      });
      rows.push(row);
    }
    if (last < list.length) rows.push(space(list.length - last));
    body.replaceChildren(...rows);
  }
  /** @param {number} to */
  function move(to) {
    active = max(0, min(list.length - 1, to));
    const top = active * ROW, head = 34;
    if (top < frame.scrollTop) frame.scrollTop = top;
    else if (top + ROW + head > frame.scrollTop + frame.clientHeight) frame.scrollTop = top + ROW + head - frame.clientHeight;
    draw();
    say(body.querySelector(".active")?.textContent || "");
  }
  on(frame, "scroll", () => requestAnimationFrame(draw));
  on(frame, "keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.target !== frame) return;
    const page = max(1, floor(frame.clientHeight / ROW) - 2);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -list.length, End: list.length }[event.key];
    if (step !== undefined) move(active + step);
    else if (event.key === "Enter" && spec.open && list.length) spec.open(list[active]);
    else return;
    event.preventDefault();
  });
  mark();
  return {
    element: frame,
    /** @param {ArrayLike<number>} rows */
    show(rows) {
      list = rows;
      active = 0;
      set(table, "aria-rowcount", rows.length + 1);
      frame.scrollTop = 0;
      draw();
    },
  };
}

/**
 * Tells screen readers what a picture or a table shows.
 * @param {string} text
 */
function say(text) {
  $("live").textContent = text;
}

/**
 * A table whose rows are all elements.
 * @param {string} label
 * @param {string[]} titles
 * @param {(Node | string)[][]} rows
 * @param {number} [wide]
 */
function simpleTable(label, titles, rows, wide = 0) {
  const head = titles.map((title, i) => h("th", { scope: "col", className: i === wide ? "wide" : "num" }, title));
  const line = (/** @type {(Node | string)[]} */ row) =>
    h("tr", {}, ...row.map((cell, i) => h("td", { className: i === wide ? "wide" : "num" }, cell)));
  return framed("auto", label, head, h("tbody", {}, ...rows.map(line)));
}

// ---- views

/** @type {Profile} */
let profile;
/** @param {string} text */
const heading = (text) => h("h2", { tabIndex: -1 }, text);

/** @param {string} hash */
async function functionsView(hash) {
  const { facts } = profile;
  const [files, fileOf] = await profile.places();
  const given = new URLSearchParams(hash.split("?")[1] || "");
  let query = given.get("q") || "", file = given.get("file") || "", heat = given.get("band") || "";
  const band = (/** @type {number} */ i) => profile.united.get(i)?.band ?? profile.band(i);
  let key = given.get("sort") || "sum", up = given.get("up") === "1";
  const input = search("Search functions", "Name, or /pattern/", (text) => ((query = text), update()), query);
  const inFile = files.count ? search("Only functions of files whose path contains", "File, or /pattern/", (text) => ((file = text), update()), file) : null;
  const select = choice("How often the functions ran", [["", "all functions"], ...(facts.heat ? [["3", "hot"], ["2", "warm"], ["1", "cold"]] : [["2", "ran"]]), ["0", "never ran"]],
    (value) => ((heat = value), update()), heat);
  const status = note();
  /** @type {Map<number, number>} */
  let ranks = new Map();
  const columns = [
    { key: "name", title: "Function", as: "wide sort" },
    { key: "band", title: "Heat", as: "slim" },
    { key: "entry", title: facts.titles.entry, as: "minor sort" },
    { key: "sum", title: facts.titles.sum, as: "minor sort" },
    { key: "share", title: "Share", as: "roomy" },
    { key: "until", title: "Until here", as: "minor" },
    { key: "max", title: facts.titles.max, as: "minor sort" },
  ].filter(({ key }) => (key !== "band" || facts.heat) && /** @type {any} */ (facts.titles)[key] !== "");
  const table = virtualTable({
    label: "Functions", key, up, columns,
    row: (i) => {
      const name = profile.name(i), until = ranks.get(i), many = profile.instances(i);
      const [entry, sum, max] = /** @type {("entry" | "sum" | "max")[]} */ (["entry", "sum", "max"]).map((key) => profile.of(i, key));
      /** @type {Record<string, Node | string>} */
      const cells = {
        name: h("a", { href: linkTo(name), title: name, tabIndex: -1 }, name + (many > 1 ? ` (${grouped(many)} instances)` : "")),
        band: badge(band(i)), entry: grouped(entry), sum: grouped(sum), max: grouped(max),
        share: share(sum, facts.total, profile.of(profile.order("sum", false)[0], "sum")), until: until === undefined ? "" : percent(until, facts.total),
      };
      return columns.map((column) => cells[column.key]);
    },
    open: (i) => (location.hash = linkTo(profile.name(i))),
    sorted: (by, upward) => ((key = by), (up = upward), update()),
  });
  function update() {
    const mask = searched(input, query, status);
    const paths = inFile ? searched(inFile, file, status, files) : null;
    if (mask === undefined || paths === undefined) return;
    const order = profile.order(key, up);
    const list = !mask && !heat && !paths ? order
      : order.filter((i) => (!mask || mask[i]) && (!heat || band(i) === +heat) && (!paths || paths[fileOf[i] - 1]));
    ranks = new Map();
    if (key === "sum" && !up) {
      let until = 0;
      for (let at = 0; at < list.length && at < 20000; at++) ranks.set(list[at], (until += profile.of(list[at], "sum")));
    }
    let sum = 0, count = 0;
    for (let at = 0; at < list.length; at++) (sum += profile.of(list[at], "sum")), (count += profile.instances(list[at]));
    status.textContent = `${grouped(count)} of ${grouped(profile.count)} functions, ${percent(sum, facts.total)} of all ${facts.unit}`;
    table.show(list);
    const state = new URLSearchParams();
    for (const [name, value] of Object.entries({ q: query, file, band: heat, sort: key !== "sum" || up ? key : "", up: up ? "1" : "" }))
      if (value) state.set(name, value);
    const text = state.toString();
    history.replaceState(null, "", "#functions" + (text ? "?" + text : ""));
  }
  main.replaceChildren(heading("Functions"), tools(input, inFile, select, status), table.element);
  update();
}

/** @param {string} hash */
async function functionView(hash) {
  const name = decodeURIComponent(hash.slice("#function/".length));
  const parts = [h("h2.symbol", { tabIndex: -1 }, name)];
  const first = profile.find(name);
  if (first < 0) parts.push(h("p", {}, "The page has no function of this name. ", h("a", { href: "#functions" }, "All functions")));
  for (let i = first; i >= 0 && i < profile.count && i < first + 50 && profile.name(i) === name; i++) {
    if (i > first) parts.push(h("hr"));
    parts.push(...(await oneFunction(i)));
  }
  main.replaceChildren(...parts);
}

/** @param {number} i */
async function oneFunction(i) {
  const { facts } = profile;
  const mangled = await profile.strings("mangled");
  const hashes = await profile.once("hashes", () => block("hashes"));
  /** @type {[string, Node | string][]} */
  const rows = facts.heat ? [["Heat", h("span", {}, badge(profile.band(i)), " " + BANDS[profile.band(i)][0])]] : [];
  for (const key of /** @type {("entry" | "sum" | "max")[]} */ (["entry", "sum", "max"]))
    if (facts.titles[key]) rows.push([facts.titles[key], grouped(profile[key][i])]);
  rows.push(["Share of all " + facts.unit, percent(profile.sum[i], facts.total)]);
  if (string(mangled, i)) rows.push(["Symbol", h("code", {}, string(mangled, i))]);
  const digits = [...hashes.subarray(8 * i, 8 * i + 8)].reverse().map((byte) => byte.toString(16).padStart(2, "0")).join("");
  if (/[^0]/.test(digits)) rows.push(["Function hash", h("code", {}, "0x" + digits)]);
  if (profile.flags[i] & 1) rows.push(["Stage", "context-sensitive counters"]);
  const [files, fileOf] = await profile.places();
  if (fileOf[i]) rows.push(["File", string(files, fileOf[i] - 1)]);
  const parts = [h("dl.facts", {}, ...rows.flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]))];
  const source = facts.source && (await profile.detail("source", i));
  if (facts.source && source) parts.push(...(await sourceOf(source, facts.source)));
  const detail = facts.detail && (await profile.detail("detail", i));
  if (detail && facts.detail === "lines") parts.push(await linesOf(detail));
  else if (detail) parts.push(...countersOf(detail, facts));
  const values = await profile.detail("values", i);
  if (values) parts.push(...(await valuesOf(values)));
  return parts;
}

/**
 * The source of a function and of the functions inlined into it, with counts beside the lines.
 * @param {Reader} detail
 * @param {{title: string, note: string}} facts
 */
async function sourceOf(detail, facts) {
  const [files, targets, lines] = await Promise.all(["files", "targets", "source-lines"].map((id) => profile.strings(id)));
  const next = () => detail.next();
  const parts = detail.list(() => {
    const callee = next(), caller = next(), call = next(), samples = next(), path = string(files, next() - 1), first = next(), size = next(), text = next();
    const counts = new Map(detail.list(() => [first + next(), next()]));
    const most = max(...counts.values());
    const label = callee ? "Inlined: " + string(targets, callee - 1) : "Source";
    return h("section", {}, part(label),
      note(callee ? `${grouped(samples)} ${profile.facts.unit}` + (call ? `, called at line ${call}` : "") + (caller ? " of " + string(targets, caller - 1) : "") + ", " : "", `${path}:${first}`),
      simpleTable(label, ["Line", facts.title, "Source"], upTo(size).map((at) => {
        const line = first + at, count = counts.get(line);
        return [String(line), count === undefined ? "" : h("span.share", {}, grouped(count), bar(count, most)), h("code.source", {}, string(lines, text + at))];
      }), 2));
  });
  return [...parts, note(parts.length ? facts.note : "The page does not have the source of this function.")];
}

/**
 * @param {Reader} detail
 * @param {Facts} facts
 */
function countersOf(detail, facts) {
  const counts = detail.list(() => detail.next());
  if (!counts.length) return [];
  const largest = counts.reduce((a, b) => max(a, b), 0);
  const make = (/** @type {number[]} */ list) =>
    simpleTable(facts.parts, ["Index", "Count", "Of the largest"], list.map((count, at) =>
      [String(at), grouped(count), share(count, largest)]));
  const box = h("div", {}, make(counts.slice(0, 200)));
  const more = counts.length > 200 ? button(`Show all ${grouped(counts.length)}`, () => {
    box.replaceChildren(make(counts));
    more.remove();
  }) : "";
  return [part(facts.parts), note(`${grouped(counts.filter((count) => count > 0).length)} of ${grouped(counts.length)} ran`), box, more];
}

/**
 * @param {Strings} targets
 * @param {number} at
 */
function targetCell(targets, at) {
  return at ? named(string(targets, at - 1)) : h("span.dim", {}, "outside the program");
}

/** @param {Reader} values */
async function valuesOf(values) {
  const targets = await profile.strings("targets");
  const parts = [];
  const sites = values.next();
  for (let site = 0; site < sites; site++) {
    const kind = values.next(), index = values.next();
    const list = values.list(() => [values.next(), values.next()]);
    if (!list.length) continue;
    const total = list.reduce((sum, [, count]) => sum + count, 0), label = `${profile.facts.kinds[kind]}, site ${index}`;
    parts.push(part(label),
      simpleTable(label, [kind === 1 ? "Size in bytes" : "Target", "Count", "Share"],
        list.map(([value, count]) => [kind === 1 ? grouped(value) : targetCell(targets, value), grouped(count), share(count, total)])));
  }
  return parts;
}

/**
 * The lines of a function of a sample profile, with inlined functions.
 * @param {Reader} detail
 */
async function linesOf(detail) {
  const targets = await profile.strings("targets");
  const rows = [];
  const next = () => detail.next();
  let most = 0;
  for (let left = next(); left > 0; left--) {
    const depth = next(), line = next(), discriminator = next(), callee = next(), samples = next();
    const calls = detail.list(() => [next(), next()]);
    const place = (line > 32767 ? line - 65536 : "+" + line) + (discriminator ? "." + discriminator : "");
    most = max(most, callee ? 0 : samples);
    rows.push({ depth, place, callee, samples, calls });
  }
  return h("section", {}, part("Lines, counted from the start of the function"),
    simpleTable("Lines", ["Line", "Samples", "Of the hottest line"], rows.map((row) => {
      const cell = h("span.line", {}, row.place + " ");
      cell.style.paddingLeft = row.depth * 1.2 + "em";
      if (row.callee) cell.append("inlined ", targetCell(targets, row.callee));
      row.calls.forEach(([target, count], at) => cell.append(at ? ", " : "calls ", targetCell(targets, target), " " + grouped(count)));
      return [cell, grouped(row.samples), row.callee ? "" : share(row.samples, most)];
    })));
}

// ---- pictures

const dark = matchMedia("(prefers-color-scheme: dark)");
/** @param {string} name */
const colour = (name) => getComputedStyle(doc.documentElement).getPropertyValue("--" + name).trim();

/**
 * A canvas that is as wide as its place.
 * @param {string} label
 * @param {number} height
 * @param {(context: CanvasRenderingContext2D, width: number, height: number) => void} paint
 */
function picture(label, height, paint) {
  const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { tabIndex: 0, role: "img", "aria-label": label }));
  const box = h("div.picture", {}, canvas);
  function draw() {
    const width = box.clientWidth, ratio = devicePixelRatio || 1;
    if (!width) return;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = height + "px";
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(ratio, ratio);
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    paint(context, width, height);
  }
  new ResizeObserver(draw).observe(box);
  on(canvas, "focus", draw);
  on(canvas, "blur", draw);
  on(dark, "change", draw);
  return { box, canvas, draw, resize: (/** @type {number} */ to) => ((height = to), draw()) };
}

/**
 * Writes a text that fits into a width.
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {number} width
 */
function fitted(context, text, x, y, width) {
  if (width < 24) return;
  let most = floor(width / 6.2);
  if (text.length > most) text = most > 3 ? text.slice(0, most - 1) + "…" : "";
  while (text && context.measureText(text).width > width) text = text.slice(0, -2) + "…", most--;
  context.fillText(text, x, y);
}

/**
 * Lays out areas as rectangles that are as square as possible.
 * @param {{value: number}[]} items sorted, largest first
 * @param {number} x
 * @param {number} y
 * @param {number} w
 * @param {number} v
 * @returns {[number, number, number, number][]}
 */
function squarified(items, x, y, w, v) {
  /** @type {[number, number, number, number][]} */
  const out = [];
  let left = items.reduce((sum, item) => sum + item.value, 0);
  for (let at = 0; at < items.length && left > 0;) {
    const side = min(w, v), scale = (w * v) / left;
    let sum = 0, end = at, worst = Infinity;
    for (; end < items.length; end++) {
      const next = sum + items[end].value, length = (next * scale) / side;
      const ratio = (/** @type {number} */ value) => {
        const other = (value * scale) / length;
        return max(length / other, other / length);
      };
      const now = max(ratio(items[at].value), ratio(items[end].value));
      if (now > worst) break;
      worst = now;
      sum = next;
    }
    if (end === at) end = at + 1, sum = items[at].value;
    const length = (sum * scale) / side;
    let offset = 0;
    for (let i = at; i < end; i++) {
      const part = sum ? (items[i].value / sum) * side : 0;
      out.push(w >= v ? [x, y + offset, length, part] : [x + offset, y, part, length]);
      offset += part;
    }
    if (w >= v) x += length, w -= length;
    else y += length, v -= length;
    left -= sum;
    at = end;
  }
  return out;
}

/** @typedef {{name: string, value: number, hot: number, list: number[], leaf: number, depth: number}} Area */

async function mapView() {
  const { facts } = profile;
  const [files, fileOf] = await profile.places();
  const both = facts.diff?.shares ? await changes() : null;
  // By file only if the files of most counts are known.
  const known = upTo(profile.count).reduce((sum, i) => sum + (fileOf[i] ? profile.sum[i] : 0), 0);
  let diff = both, by = 2 * known > facts.total ? "file" : "name", area = "sum";
  const nameOf = (/** @type {number} */ i) => (diff ? string(diff.names, i) : profile.name(i));
  /** @type {Area[]} */
  let trail = [];
  /**
   * @param {number} i
   * @param {number} depth
   */
  const partOf = (i, depth) => {
    const name = nameOf(i);
    if (by === "file" && !diff) {
      const parts = fileOf[i] ? string(files, fileOf[i] - 1).split("/").filter(Boolean) : ["(no file known)"];
      return depth < parts.length ? [parts[depth], -1] : [name, i];
    }
    const parts = pathOf(name);
    return depth < parts.length - 1 ? [parts[depth], -1] : [name, i];
  };
  const value = (/** @type {number} */ i) => (diff ? diff.moved[i] : area === "sum" ? profile.sum[i] : 1);
  /**
   * The children of an area, largest first.
   * @param {Area} node
   * @returns {Area[]}
   */
  function children(node) {
    for (let { depth } = node; ; depth++) {
      /** @type {Map<string, Area>} */
      const groups = new Map();
      for (const i of node.list) {
        const amount = value(i);
        if (!(amount > 0)) continue;
        const [name, leaf] = /** @type {[string, number]} */ (partOf(i, depth));
        const id = leaf < 0 ? name + "/" : leaf + "";
        let group = groups.get(id);
        if (!group) groups.set(id, (group = { name, value: 0, hot: 0, list: [], leaf, depth: depth + 1 }));
        group.value += amount;
        group.list.push(i);
        if (diff ? diff.new[i] > diff.old[i] : profile.band(i) === 3) group.hot += amount;
      }
      const found = [...groups.values()].sort((a, b) => b.value - a.value);
      // A folder with nothing but one folder is passed.
      if (found.length !== 1 || found[0].leaf >= 0) return found;
    }
  }
  const all = () => ({ name: "all", value: 0, hot: 0, list: upTo(diff ? diff.count : profile.count), leaf: -1, depth: 0 });
  trail = [all()];
  /** @type {{area: Area, box: [number, number, number, number]}[]} */
  let cells = [];
  let marked = 0;
  const table = h("div");
  const path = h("nav.trail", { "aria-label": "Place in the map" });
  const label = () => (diff ? "Area is the share that moved; orange gained, blue lost"
    : `Area is the number of ${area === "sum" ? facts.unit : "functions"}; orange is hot, blue is cold`);
  const legend = note();
  const paint = (/** @type {number} */ hot) => (hot > 0.66 ? "hot" : hot > 0.33 ? "warm" : "cold");
  const canvas = picture("Map of functions; the table below has the same numbers", 460, (context, width, height) => {
    cells = [];
    const now = trail[trail.length - 1];
    const kids = children(now).slice(0, 400);
    const boxes = squarified(kids, 0, 0, width, height);
    boxes.forEach((box, at) => {
      const [x, y, w, v] = box, kid = kids[at];
      cells.push({ area: kid, box });
      context.fillStyle = colour("area-" + paint(kid.value ? kid.hot / kid.value : 0));
      context.fillRect(x + 0.5, y + 0.5, max(0, w - 1), max(0, v - 1));
      if (kid.leaf < 0 && w > 60 && v > 40) {
        const inner = children(kid).slice(0, 150);
        squarified(inner, x + 3, y + 20, w - 6, v - 23).forEach(([ix, iy, iw, iv], j) => {
          context.fillStyle = colour("cell-" + paint(inner[j].hot / inner[j].value));
          context.fillRect(ix + 0.5, iy + 0.5, max(0, iw - 1), max(0, iv - 1));
          context.fillStyle = colour("ink");
          if (iv > 14) fitted(context, inner[j].leaf >= 0 ? pathOf(inner[j].name).slice(-1)[0] : inner[j].name, ix + 4, iy + min(10, iv / 2), iw - 8);
        });
      }
      context.fillStyle = colour("ink");
      if (v > 14) fitted(context, kid.leaf >= 0 ? pathOf(kid.name).slice(-1)[0] : kid.name, x + 5, y + min(11, v / 2), w - 10);
      if (at === marked && doc.activeElement === canvas.canvas) {
        context.strokeStyle = colour("accent");
        context.lineWidth = 3;
        context.strokeRect(x + 1.5, y + 1.5, max(0, w - 3), max(0, v - 3));
      }
    });
  });
  const text = (/** @type {Area} */ kid) => {
    const all = children(trail[0]).reduce((sum, one) => sum + one.value, 0);
    return `${kid.name}: ${percent(kid.value, all)} of ${diff ? "what moved" : facts.unit}, ${grouped(kid.list.length)} functions`;
  };
  /** @param {Area} kid */
  function enter(kid) {
    if (kid.leaf >= 0) location.hash = linkTo(kid.name);
    else trail.push(kid), (marked = 0), show();
  }
  function show() {
    const now = trail[trail.length - 1];
    legend.textContent = label() + ". Click, or press Enter, to look inside; Escape goes back.";
    const kids = children(now);
    const sum = kids.reduce((total, kid) => total + kid.value, 0);
    table.replaceChildren(simpleTable("The same as a table", ["Part", "Functions", diff ? "Moved" : facts.titles.sum, "Share", diff ? "Gained" : "Hot"],
      kids.slice(0, 200).map((kid) => [
        kid.leaf >= 0 ? named(kid.name) : button(kid.name, () => enter(kid), { className: "link" }),
        grouped(kid.list.length), diff ? percent(kid.value, 1e9) : grouped(kid.value), percent(kid.value, sum), percent(kid.hot, kid.value)])),
      kids.length > 200 ? note(`${grouped(kids.length - 200)} smaller parts are left out of the table.`) : "");
    path.replaceChildren(...trail.map((node, at) => button(node.name, () => {
      trail = trail.slice(0, at + 1);
      show();
    }, { className: "link", disabled: at === trail.length - 1 })));
    canvas.draw();
  }
  const under = (/** @type {MouseEvent} */ event) =>
    cells.find(({ box: [x, y, w, v] }) => event.offsetX >= x && event.offsetX < x + w && event.offsetY >= y && event.offsetY < y + v);
  on(canvas.canvas, "click", (event) => {
    const cell = under(event);
    if (cell) enter(cell.area);
  });
  hover(canvas.canvas, (event) => {
    const cell = under(event);
    return cell ? text(cell.area) : "";
  });
  on(canvas.canvas, "keydown", (event) => {
    const { key } = event;
    if (/^Arrow(Right|Down)/.test(key)) marked = min(cells.length - 1, marked + 1);
    else if (/^Arrow(Left|Up)/.test(key)) marked = max(0, marked - 1);
    else if (key === "Enter" && cells[marked]) return enter(cells[marked].area);
    else if (/Backspace|Escape/.test(key) && trail.length > 1) return trail.pop(), show();
    else return;
    event.preventDefault();
    canvas.draw();
    if (cells[marked]) say(text(cells[marked].area));
  });
  const again = () => ((trail = [all()]), show());
  const areas = [["sum", "area: " + facts.unit], ["one", "area: number of functions"]];
  if (both) areas.unshift(["moved", "area: what moved"]);
  main.replaceChildren(heading("Map"), tools(
    choice("Area", areas, (to) => ((area = to), (diff = to === "moved" ? both : null), again())),
    files.count ? choice("Group by", [["file", "by file"], ["name", "by namespace or crate"]], (to) => ((by = to), again()), by) : null, path),
    canvas.box, legend, part("The same as a table"), table);
  show();
}

const tip = h("div", { id: "tip", hidden: true });
/**
 * Shows a text beside the pointer.
 * @param {HTMLElement} element
 * @param {(event: MouseEvent) => string} text
 */
function hover(element, text) {
  on(element, "mousemove", (event) => {
    const shown = text(event);
    tip.hidden = !shown;
    tip.textContent = shown;
    tip.style.left = min(event.clientX + 12, innerWidth - 330) + "px";
    tip.style.top = event.clientY + 16 + "px";
  });
  on(element, "mouseleave", () => (tip.hidden = true));
}

/** @typedef {{name: Uint32Array, depth: Uint16Array | Uint32Array, weight: Float64Array, cold: Uint16Array, hot: Uint16Array,
 *   start: Float64Array, parent: Int32Array, count: number}} Frames */

/**
 * @param {number} count
 * @returns {Frames}
 */
const newFrames = (count) => ({
  name: new Uint32Array(count), depth: new Uint32Array(count), weight: new Float64Array(count), cold: new Uint16Array(count),
  hot: new Uint16Array(count), start: new Float64Array(count), parent: new Int32Array(count), count,
});

/** @param {Uint8Array} bytes */
function framesOf(bytes) {
  const reader = new Reader(bytes), next = () => reader.next(), count = next(), frames = newFrames(count);
  /** The frame, and the start of its next callee, at each depth. @type {number[]} */
  const open = [], from = [];
  for (let i = 0; i < count; i++) {
    const depth = (frames.depth[i] = next());
    frames.name[i] = next();
    frames.weight[i] = next();
    frames.cold[i] = next();
    frames.hot[i] = next();
    frames.parent[i] = depth ? open[depth - 1] : -1;
    frames.start[i] = depth ? from[depth - 1] : 0;
    if (depth) from[depth - 1] += frames.weight[i];
    open[depth] = i;
    from[depth] = frames.start[i];
  }
  return frames;
}

/**
 * Merges the stacks from their innermost frame on.
 * @param {Frames} frames
 * @returns {Frames}
 */
function inverted(frames) {
  const own = Float64Array.from(frames.weight);
  for (let i = 1; i < frames.count; i++) own[frames.parent[i]] -= frames.weight[i];
  const least = frames.weight[0] / 10000;
  /** @typedef {{name: number, weight: number, cold: number, hot: number, kids: Map<number, Tree>}} Tree */
  const fresh = (/** @type {number} */ name) => /** @type {Tree} */ ({ name, weight: 0, cold: 0, hot: 0, kids: new Map() });
  const root = fresh(frames.name[0]);
  let count = 1;
  for (let i = 1; i < frames.count; i++) {
    if (!(own[i] > least)) continue;
    const add = (/** @type {Tree} */ node) => {
      node.weight += own[i];
      node.cold += (own[i] * frames.cold[i]) / 1000;
      node.hot += (own[i] * frames.hot[i]) / 1000;
    };
    add(root);
    for (let at = i, node = root; at > 0; at = frames.parent[at]) {
      let kid = node.kids.get(frames.name[at]);
      if (!kid) node.kids.set(frames.name[at], (kid = fresh(frames.name[at]))), count++;
      add((node = kid));
    }
  }
  const out = newFrames(count);
  let at = 0;
  /** @type {[Tree, number, number, number][]} */
  const pending = [[root, 0, 0, -1]];
  for (let top = pending.pop(); top; top = pending.pop()) {
    const [node, depth, start, parent] = top, i = at++;
    out.name[i] = node.name;
    out.depth[i] = depth;
    out.weight[i] = node.weight;
    out.cold[i] = node.weight ? (1000 * node.cold) / node.weight : 0;
    out.hot[i] = node.weight ? (1000 * node.hot) / node.weight : 0;
    out.start[i] = start;
    out.parent[i] = parent;
    let from = start;
    for (const kid of [...node.kids.values()].sort((a, b) => b.weight - a.weight)) {
      pending.push([kid, depth + 1, from, i]);
      from += kid.weight;
    }
  }
  return out;
}

async function flameView() {
  const facts = /** @type {FlameFacts} */ (profile.facts.flame);
  const names = await profile.strings("flame-names");
  const straight = await profile.once("frames", async () => framesOf(await block("flame")));
  let frames = straight, focus = 0, marked = 0, query = "";
  const ROWH = 18;
  const nameOf = (/** @type {number} */ i) => (i ? string(names, frames.name[i]) : "all");
  const text = (/** @type {number} */ i) => {
    const heat = facts.temperature ? `; ${(frames.cold[i] / 10).toFixed(0)}% cold, ${(frames.hot[i] / 10).toFixed(0)}% hot` : "";
    return `${nameOf(i)}: ${grouped(round(frames.weight[i]))} ${facts.unit}, ${percent(frames.weight[i], frames.weight[0])}${heat}`;
  };
  /** @type {Map<number, boolean>} */
  let found = new Map();
  const hit = (/** @type {number} */ i) => {
    const id = frames.name[i];
    if (!found.has(id)) found.set(id, nameOf(i).toLowerCase().includes(query.toLowerCase()));
    return found.get(id);
  };
  const fill = (/** @type {number} */ i) => {
    if (query && !hit(i)) return colour("frame-dim");
    if (facts.temperature) {
      const cold = frames.cold[i], hot = frames.hot[i];
      return colour(hot > 500 ? "frame-hot" : cold > 500 ? "frame-cold" : "frame-warm");
    }
    return colour(query ? "frame-hot" : i & 1 ? "frame-a" : "frame-b");
  };
  const box = (/** @type {number} */ i, /** @type {number} */ width) => {
    const scale = width / (frames.weight[focus] || 1);
    const left = max(0, (frames.start[i] - frames.start[focus]) * scale);
    const right = min(width, (frames.start[i] + frames.weight[i] - frames.start[focus]) * scale);
    return [left, right - left];
  };
  const canvas = picture(facts.title, 400, (context, width) => {
    for (let i = 0; i < frames.count; i++) {
      const [x, w] = box(i, width);
      if (w < 0.4) continue;
      const y = frames.depth[i] * ROWH;
      context.fillStyle = fill(i);
      context.fillRect(x, y, max(0.4, w - 0.6), ROWH - 1);
      if (i === marked && doc.activeElement === canvas.canvas) {
        context.strokeStyle = colour("accent");
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, max(1, w - 2.6), ROWH - 3);
      }
      context.fillStyle = colour("frame-ink");
      fitted(context, nameOf(i), x + 4, y + ROWH / 2, w - 8);
    }
  });
  const deepest = () => {
    let most = 0;
    for (let i = 0; i < frames.count; i++) if (frames.depth[i] > most) most = frames.depth[i];
    return min(1200, most + 1) * ROWH;
  };
  const under = (/** @type {MouseEvent} */ event) => {
    const depth = floor(event.offsetY / ROWH), width = canvas.canvas.clientWidth;
    for (let i = 0; i < frames.count; i++) {
      if (frames.depth[i] !== depth) continue;
      const [x, w] = box(i, width);
      if (w > 0 && event.offsetX >= x && event.offsetX < x + w) return i;
    }
    return -1;
  };
  const status = note(text(0));
  const select = (/** @type {number} */ i, zoom = false) => {
    marked = i;
    if (zoom) focus = i;
    status.textContent = text(i);
    say(text(i));
    canvas.draw();
  };
  on(canvas.canvas, "click", (event) => {
    const i = under(event);
    if (i >= 0) select(i, true);
  });
  hover(canvas.canvas, (event) => {
    const i = under(event);
    return i >= 0 ? text(i) : "";
  });
  on(canvas.canvas, "keydown", (event) => {
    const kin = (/** @type {number} */ parent) => {
      const list = [];
      for (let i = 0; i < frames.count; i++) if (frames.parent[i] === parent) list.push(i);
      return list.sort((a, b) => frames.start[a] - frames.start[b]);
    };
    const { key } = event;
    let to = marked;
    if (key === "ArrowDown") {
      const kids = kin(marked);
      if (kids.length) to = kids.reduce((a, b) => (frames.weight[b] > frames.weight[a] ? b : a));
    } else if (key === "ArrowUp") to = max(0, frames.parent[marked]);
    else if (key === "ArrowLeft" || key === "ArrowRight") {
      const list = kin(frames.parent[marked]), at = list.indexOf(marked);
      to = list[at + (key === "ArrowLeft" ? -1 : 1)] ?? marked;
    } else if (key === "Enter") return select(marked, true);
    else if (key === "Escape") return select(0, true);
    else return;
    event.preventDefault();
    select(to);
  });
  const input = search("Mark functions whose name contains", "Mark functions", (wanted) => {
    query = wanted;
    found = new Map();
    let sum = 0;
    if (query) for (let i = 1; i < frames.count; i++) {
      // A frame below a marked frame is counted with it.
      let above = frames.parent[i], inside = false;
      for (; above > 0 && !inside; above = frames.parent[above]) inside = !!hit(above);
      if (!inside && hit(i)) sum += frames.weight[i];
    }
    status.textContent = query ? `${percent(sum, frames.weight[0])} of ${facts.unit} in stacks with a marked function` : text(focus);
    canvas.draw();
  });
  const turn = button("Inverted", () => {
    const turned = frames === straight;
    frames = turned ? inverted(straight) : straight;
    set(turn, "aria-pressed", turned);
    focus = marked = 0;
    found = new Map();
    canvas.resize(deepest());
    status.textContent = text(0) + (turned ? ". Stacks below 0.01% are left out of the inverted picture." : "");
  }, { "aria-pressed": "false" });
  const back = button("Whole", () => select(0, true));
  // The table twin: weights by function.
  /** @type {Map<number, {own: number, all: number}>} */
  const sums = new Map();
  const sumOf = (/** @type {number} */ id) => {
    let sum = sums.get(id);
    if (!sum) sums.set(id, (sum = { own: 0, all: 0 }));
    return sum;
  };
  const { name, parent, weight } = straight;
  for (let i = 1; i < straight.count; i++) {
    const sum = sumOf(name[i]);
    let nested = false;
    for (let at = parent[i]; at > 0 && !nested; at = parent[at]) nested = name[at] === name[i];
    sum.own += weight[i];
    if (!nested) sum.all += weight[i];
    if (parent[i] > 0) sumOf(name[parent[i]]).own -= weight[i];
  }
  const top = [...sums].sort((a, b) => b[1].all - a[1].all).slice(0, 200);
  const twin = simpleTable("The same by function", ["Function", "With callees", "Share", "Alone", "Share"], top.map(([id, sum]) => {
    const own = max(0, sum.own), whole = weight[0];
    return [named(string(names, id)), grouped(sum.all), percent(sum.all, whole), grouped(own), percent(own, whole)];
  }));
  main.replaceChildren(heading(facts.title), h("p", {}, facts.note), tools(input, turn, back, status), canvas.box,
    part("The same by function"), twin);
  if (profile.facts.contexts) main.append(part("Contexts"), await contextsOf());
  canvas.resize(deepest());
}

/** The contexts of a heap profile. */
async function contextsOf() {
  const names = await profile.strings("stack-names");
  const reader = new Reader(await profile.once("contexts", () => block("contexts")));
  /** @type {{bytes: number, count: number, life: number, density: number, heat: number, site: number, stack: number[], width: number, accesses: number[]}[]} */
  const list = [];
  while (!reader.done()) {
    const next = () => reader.next();
    list.push({ bytes: next(), count: next(), life: next(), density: next() - 1, heat: next(), site: next(), stack: reader.list(next), width: next(), accesses: reader.list(next) });
  }
  let key = "bytes", up = false;
  const stack = h("div.stack", { "aria-live": "polite" }, "Choose a context to see its call stack.");
  const table = virtualTable({
    label: "Contexts", key, up,
    columns: [{ key: "name", title: "Allocating function", as: "wide" }, { key: "heat", title: "Heat", as: "slim" }, { key: "bytes", title: "Bytes", as: "sort" },
      { key: "count", title: "Allocations", as: "minor sort" }, { key: "life", title: "Lifetime (ms)", as: "minor sort" },
      { key: "density", title: "Accesses per byte and s", as: "minor sort" }],
    row: (i) => {
      const one = list[i], name = string(names, one.stack[one.site] ?? 0);
      return [h("span", { title: name }, name), badge(one.heat), grouped(one.bytes), grouped(one.count), grouped(one.life), one.density < 0 ? "unknown" : (one.density / 100).toFixed(2)];
    },
    open: (i) => stack.replaceChildren(h("h4", {}, "Call stack, the allocation first"), h("ol", {}, ...list[i].stack.map((id) => h("li", {}, string(names, id)))), ...accessesOf(list[i])),
    sorted: (by, upward) => ((key = by), (up = upward), update()),
  });
  function update() {
    table.show(sorted(upTo(list.length), (i) => /** @type {any} */ (list[i])[key], up));
  }
  setTimeout(update);
  return h("div", {}, table.element, stack);
}

/**
 * How often each part of the allocations of a context was accessed.
 * @param {{width: number, accesses: number[]}} one
 */
function accessesOf({ width, accesses }) {
  if (!accesses.length) return [];
  const highest = max(1, ...accesses), label = `Accesses by offset: a bar for each ${grouped(width)} bytes of an allocation; the highest is ${grouped(highest)}`;
  const canvas = picture(label, 90, (context, size) => {
    const step = size / accesses.length;
    context.fillStyle = colour("accent");
    accesses.forEach((count, at) => {
      const height = count && max(1, (count / highest) * 88);
      context.fillRect(at * step, 90 - height, max(1, step - 1), height);
    });
  });
  return [h("h4", {}, label), canvas.box];
}

async function startView() {
  const reader = new Reader(await profile.once("traces", () => block("traces")));
  const names = await profile.strings("targets"); // From 1.
  /** @type {{weight: number, list: number[]}[]} */
  const traces = [];
  while (!reader.done()) {
    const weight = reader.next();
    traces.push({ weight, list: reader.list(() => reader.next()) });
  }
  /** @type {Map<number, {first: number, sum: number, runs: number}>} */
  const seen = new Map();
  for (const trace of traces) trace.list.forEach((id, at) => {
    const one = seen.get(id);
    if (one) one.first = min(one.first, at), (one.sum += at), one.runs++;
    else seen.set(id, { first: at, sum: at, runs: 1 });
  });
  /** The place of a function in the proposed order, from 1. @type {Map<number, number>} */
  const proposed = new Map();
  const { order: proposals, startup } = profile.facts;
  if (proposals) numbers(await block("order"), proposals).forEach((id, at) => proposed.set(id, at + 1));
  const order = [...seen].sort((a, b) => a[1].sum / a[1].runs - b[1].sum / b[1].runs || a[0] - b[0]);
  const column = new Map(order.map(([id], at) => [id, at]));
  const rows = traces.slice(0, 200), height = max(60, min(480, rows.length * 8));
  const label = `${traces.length === 1 ? "One trace" : grouped(traces.length) + " traces"}: a row per trace, a column per function in the order of the mean first call; dark is early`;
  const canvas = picture(label, height, (context, width) => {
    const line = height / rows.length, bins = max(1, min(floor(width / 2), order.length)), step = width / bins;
    context.fillStyle = colour("accent");
    rows.forEach((trace, y) => {
      const sums = new Float64Array(bins), counts = new Float64Array(bins);
      trace.list.forEach((id, at) => {
        const bin = floor(((column.get(id) || 0) / order.length) * bins);
        sums[bin] += at;
        counts[bin]++;
      });
      for (let bin = 0; bin < bins; bin++) {
        if (!counts[bin]) continue;
        context.globalAlpha = 1 - (0.88 * sums[bin]) / counts[bin] / trace.list.length;
        context.fillRect(bin * step, y * line, step, max(1, line - 1));
      }
    });
    context.globalAlpha = 1;
  });
  const table = virtualTable({
    label: "Functions by first call",
    columns: [{ key: "name", title: "Function", as: "wide" }, { key: "mean", title: "Mean" }, { key: "first", title: "Earliest" }, { key: "runs", title: "Traces", as: "minor" },
      ...(proposals ? [{ key: "order", title: "Proposed" }] : [])],
    row: (i) => {
      const [id, one] = order[i], name = string(names, id - 1);
      return [named(name, { tabIndex: -1 }), (one.sum / one.runs + 1).toFixed(1), grouped(one.first + 1), `${one.runs} of ${traces.length}`,
        ...(proposals ? [proposed.has(id) ? grouped(/** @type {number} */ (proposed.get(id))) : "–"] : [])];
    },
    open: (i) => (location.hash = linkTo(string(names, order[i][0] - 1))),
  });
  main.replaceChildren(heading("Start-up"), h("p", {}, "The order in which functions were called for the first time."), canvas.box,
    note(label + "."),
    ...(startup.length ? [part("Memory touched at start-up"), ...startup.map((line) => h("p", {}, line))] : []),
    part("Functions by first call"),
    proposals ? note("“Proposed” is the place in the order that profkit order makes for linkers.") : "", table.element);
  table.show(upTo(order.length));
}

/** @typedef {{names: Strings, change: Float64Array, old: Float64Array, new: Float64Array, moved: Float64Array, count: number}} Changes */

/**
 * The functions that changed, with their shares in billionths, or their positions.
 * @returns {Promise<Changes>}
 */
function changes() {
  return profile.once("diff", async () => {
    const count = /** @type {DiffFacts} */ (profile.facts.diff).count;
    const [change, old, now, moved] = await Promise.all(["change", "old", "new", "moved"].map(async (id) => numbers(await block("diff-" + id), count)));
    return { names: await profile.strings("diff-names"), change, old, new: now, moved, count };
  });
}

async function diffView() {
  const facts = /** @type {DiffFacts} */ (profile.facts.diff);
  const diff = await changes();
  const delta = diff.new.map((now, i) => (facts.shares || (now && diff.old[i]) ? now - diff.old[i] : 0));
  const ids = Array.from(diff.old.keys());
  let wanted = "", query = "", key = facts.shares ? "moved" : "new", up = !facts.shares;
  const columns = /** @type {Record<string, any>} */ ({ ...diff, delta });
  const input = search("Search functions", "Name, or /pattern/", (text) => ((query = text), update()));
  const select = choice("Kind of change", [["", "all changes"], ...facts.columns.map((name, i) => [String(i + 1), name])], (value) => ((wanted = value), update()));
  const status = note();
  const value = (/** @type {number} */ n) => (facts.shares ? percent(n, 1e9) : n ? grouped(n) : "–");
  const table = virtualTable({
    label: "Changed functions", key, up,
    columns: [{ key: "name", title: "Function", as: "wide sort" }, { key: "change", title: "Change", as: "minor words" },
      { key: "old", title: facts.shares ? "Old share" : "Old position", as: "minor sort" },
      { key: "new", title: facts.shares ? "New share" : "New position", as: "minor sort" },
      { key: "delta", title: "Difference", as: "sort roomy" }, ...(facts.shares ? [{ key: "moved", title: "Moved", as: "minor sort" }] : [])],
    row: (i) => {
      const name = string(diff.names, i), by = delta[i];
      const text = facts.shares ? (abs(by) / 1e7).toFixed(2) + "%" : grouped(abs(by));
      return [named(name, { title: name, tabIndex: -1 }),
        facts.columns[diff.change[i] - 1], value(diff.old[i]), value(diff.new[i]),
        h("span", { className: by > 0 ? "gain" : "loss" }, (by > 0 ? "+" : by < 0 ? "−" : "") + text), ...(facts.shares ? [percent(diff.moved[i], 1e9)] : [])];
    },
    open: (i) => (location.hash = linkTo(string(diff.names, i))),
    sorted: (by, upward) => ((key = by), (up = upward), update()),
  });
  function update() {
    const mask = searched(input, query, status, diff.names);
    if (mask === undefined) return;
    const list = ids.filter((i) => (!wanted || diff.change[i] === +wanted) && (!mask || mask[i]));
    const column = columns[key];
    sorted(list, (i) => (column ? column[i] : i), up);
    status.textContent = `${grouped(list.length)} of ${grouped(diff.count)} changed functions`;
    table.show(list);
  }
  main.replaceChildren(heading("What changed"), h("p", {}, `From ${baseName(facts.old)} to ${baseName(facts.new)}. `, facts.moved ? `${facts.moved} of all ${profile.facts.unit} moved.` : ""),
    tools(input, select, status), table.element);
  update();
}

// ---- start

/** @type {[string, string, (hash: string) => void | Promise<void>][]} */
const views = [["summary", "Summary", () => main.replaceChildren(summary)]];
const summary = $("overview");

/** @type {Record<string, string>} */
const LINKED = { diff: "what-changed", start: "start-up", flame: "flame-graph" };
let drawn = 0;
async function route() {
  const { hash } = location;
  const asked = hash.slice(1).split(/[/?]/)[0];
  // Names of views in older links.
  const [name, , show] = views.find(([id]) => id === asked || id === LINKED[asked] || (asked === "flame" && id === "heap")) || views[0];
  const view = asked === "function" ? functionView : show;
  const tab = asked === "function" ? "functions" : name;
  for (const link of doc.querySelectorAll("#views a"))
    set(link, "aria-current", link.getAttribute("href") === "#" + tab ? "page" : null);
  tip.hidden = true;
  await view(hash);
  if (drawn++) /** @type {HTMLElement | null} */ (main.querySelector("h2"))?.focus({ preventScroll: true }), scrollTo(0, 0);
  doc.documentElement.dataset.view = asked === "function" ? asked : name;
}

async function start() {
  const facts = /** @type {Facts} */ (JSON.parse(new TextDecoder().decode(await block("facts"))));
  profile = new Profile(facts);
  await profile.load();
  if (facts.diff) views.push(["what-changed", "What changed", diffView]);
  if (profile.count) views.push(["functions", "Functions", functionsView], ["map", "Map", mapView]);
  if (facts.flame) views.push(facts.flame.temperature ? ["heap", "Heap", flameView] : ["flame-graph", "Flame graph", flameView]);
  if (facts.traces) views.push(["start-up", "Start-up", startView]);
  $("views").replaceChildren(...views.map(([id, title]) => h("a", { href: "#" + id }, title)));
  doc.body.append(tip);
  $("plain")?.remove();
  on(window, "hashchange", route);
  on(window, "keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(/** @type {HTMLElement} */ (event.target).tagName)) {
      const input = /** @type {HTMLElement | null} */ (main.querySelector("input[type=search]"));
      if (input) event.preventDefault(), input.focus();
      else if (profile.count) event.preventDefault(), (location.hash = "#functions");
    }
  });
  await route();
  doc.documentElement.dataset.ready = "1";
}
start().catch((error) => {
  $("views").replaceChildren(h("span", { role: "alert" }, "The data of this page cannot be read: " + error.message + ". A newer browser may help."));
});
