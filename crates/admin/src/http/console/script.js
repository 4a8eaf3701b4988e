// The script of the console: a section for each hash, filled from the admin API and filled again every few seconds.
// Values come into the page as text nodes only, never as markup. A node that does not answer leaves the last figures,
// faded, with a line that says since when; the page goes on trying, more slowly each time.
"use strict";

const PERIOD = 2000, PERIOD_MAX = 30000, TIMEOUT = 15000, KEPT = 60;
const $ = (id) => document.getElementById(id);

// ---- the node ----

class Refused extends Error { constructor(status, message) { super(message); this.status = status; } }

async function call(path, body) {
  const options = { signal: AbortSignal.timeout(TIMEOUT), credentials: "same-origin" };
  if (body !== undefined) Object.assign(options, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const answer = await fetch(path, options);
  const text = await answer.text();
  let value;
  try { value = JSON.parse(text); } catch { throw new Refused(answer.status, text || "the node sent no JSON"); }
  if (!answer.ok) throw new Refused(answer.status, Object.values(value || {}).join(" ") || String(answer.status));
  return value;
}
const query = (fields) => new URLSearchParams(fields).toString();

// ---- figures as words ----

const number = (n) => n == null ? "–" : Math.round(n).toLocaleString("en");
function bytes(n) {
  if (n == null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (n >= 1024 && unit < 5) { n /= 1024; unit += 1; }
  return (unit && n < 100 ? n.toFixed(1) : Math.round(n)) + " " + units[unit];
}
function micros(n) {
  if (n == null || Number.isNaN(n)) return "–";
  return n < 1000 ? Math.round(n) + " µs" : n < 1e6 ? (n / 1000).toFixed(n < 1e4 ? 2 : 1) + " ms" : (n / 1e6).toFixed(2) + " s";
}
function seconds(n) {
  if (n == null) return "–";
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => n >= size);
  if (first < 0) return "0 s";
  return parts.slice(first, first + 2).map(([size, unit]) => { const many = Math.floor(n / size); n -= many * size; return many ? many + " " + unit : ""; }).join(" ").trim();
}
const percent = (share) => share == null || Number.isNaN(share) ? "–" : (100 * share).toFixed(1) + " %";
const time = (millis) => millis ? new Date(millis).toLocaleString("sv") : "–";
const rate = (n) => n == null ? "–" : n >= 100 ? number(n) + "/s" : n.toFixed(1) + "/s";

// Cassandra's buckets: each offset is 1.2 times the one before, and at least one more.
const offsets = [1];
while (offsets.length < 240) { const last = offsets[offsets.length - 1]; offsets.push(Math.max(last + 1, Math.round(last * 1.2))); }
const count = (histogram) => histogram.buckets.reduce((a, b) => a + b, 0);
function percentile(buckets, share) {
  const wanted = Math.ceil(buckets.reduce((a, b) => a + b, 0) * share);
  let seen = 0;
  for (let i = 0; i < buckets.length; i++) { seen += buckets[i]; if (wanted > 0 && seen >= wanted) return offsets[Math.min(i, offsets.length - 1)]; }
  return null;
}
// The histogram since an earlier one; all of it where there is no earlier one.
const since = (now, before) => before ? now.buckets.map((n, i) => n - (before.buckets[i] || 0)) : now.buckets;

// ---- building the page ----

function make(name, attributes = {}, ...children) {
  const svg = ["svg", "rect", "path", "title"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child != null) node.append(child);
  return node;
}
const card = (name, value, kind) => make("div", { class: "card" }, make("b", { class: kind }, String(value)), make("span", {}, name));
const cards = (...list) => make("div", { class: "cards" }, list);
const soft = (text) => make("p", { class: "soft" }, text);
const code = (text) => make("code", {}, text);
function bar(done, total, label) {
  return make("span", {}, make("progress", { max: Math.max(total, 1), value: done, "aria-label": label }), " " + (total ? Math.floor(100 * done / total) + " %" : ""));
}
function line(values, label) {
  const width = 160, height = 30, top = Math.max(...values, 1e-9);
  const at = (v, i) => (i * width / Math.max(KEPT - 1, 1)).toFixed(1) + " " + (height - 1 - v / top * (height - 3)).toFixed(1);
  const path = values.length > 1 ? "M" + values.map(at).join("L") : "";
  return make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, make("path", { d: path }));
}
function bars(buckets, label, word = micros) {
  const used = buckets.map((n, i) => [n, i]).filter(([n]) => n > 0);
  if (!used.length) return null;
  const first = used[0][1], last = used[used.length - 1][1], top = Math.max(...buckets), height = 46, step = 7;
  const rects = [];
  for (let i = first; i <= last; i++) {
    const size = Math.max(buckets[i] ? 1 : 0, buckets[i] / top * height);
    const title = make("title", {}); title.textContent = `up to ${word(offsets[Math.min(i, offsets.length - 1)])}: ${number(buckets[i])}`;
    rects.push(make("rect", { x: (i - first) * step, y: height - size, width: step - 1, height: size }, title));
  }
  const width = (last - first + 1) * step;
  return make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, rects);
}

const orders = {};
// Columns: [title, cell of a row, "n" for numbers, value to sort by].
function table(caption, columns, rows, empty) {
  if (!rows.length) return make("div", {}, make("h3", {}, caption), soft(empty || "Nothing at present."));
  const order = orders[caption];
  if (order) {
    const value = columns[order.column][3];
    rows = [...rows].sort((a, b) => { const [x, y] = [value(a), value(b)]; return (x > y ? 1 : x < y ? -1 : 0) * order.way; });
  }
  const head = columns.map(([title, , kind, value], column) => {
    const mine = order && order.column === column;
    if (!value) return make("th", { scope: "col", class: kind }, title);
    const sort = () => { orders[caption] = { column, way: mine ? -order.way : kind === "n" ? -1 : 1 }; show(); };
    const id = "sort-" + caption + column;
    return make("th", { scope: "col", class: kind, "aria-sort": mine ? (order.way > 0 ? "ascending" : "descending") : "none" },
      make("button", { type: "button", id, onclick: sort }, title + (mine ? (order.way > 0 ? " ▲" : " ▼") : "")));
  });
  const body = rows.map((row) => make("tr", {}, columns.map(([, cell, kind], i) => {
    const value = cell(row);
    return i ? make("td", { class: kind }, value ?? "–") : make("th", { scope: "row", class: kind }, value ?? "–");
  })));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, head)), make("tbody", {}, body)));
}

// ---- the sections ----

const before = {};
// The change a second of a figure between two visits; keeps a short history for the line.
function change(name, value) {
  const now = performance.now(), last = before[name];
  const history = last ? last.history : [];
  let per = null;
  if (last && now - last.at > 200) { per = Math.max(0, (value - last.value) * 1000 / (now - last.at)); history.push(per); if (history.length > KEPT) history.shift(); }
  before[name] = { at: now, value, history };
  return { per, history };
}
const kept = {};
function window_of(name, histogram) {
  const last = kept[name];
  kept[name] = histogram;
  return since(histogram, last);
}

async function overview() {
  const [node, latencies, metrics, pools] = await Promise.all([call("/api/node"), call("/api/client_latencies"), call("/api/metrics"), call("/api/pools")]);
  const requests = metrics.requests.reduce((sum, [, n]) => sum + n, 0);
  const errors = metrics.errors.reduce((sum, [, n]) => sum + n, 0);
  const [asked, failed, cpu] = [change("requests", requests), change("errors", errors), change("cpu", metrics.cpu_millis / 1000)];
  const kinds = [["read", "Reads"], ["write", "Writes"], ["range", "Range reads"], ["cas_read", "Serial reads"], ["cas_write", "Conditional writes"]];
  const rows = kinds.map(([key, title]) => ({ key, title, all: latencies[key], recent: window_of("client" + key, latencies[key]), now: change("client" + key, count(latencies[key])) }));
  return [
    cards(
      card("state", node.mode, node.mode === "NORMAL" ? "good" : "warn"), card("clients", number(metrics.connections)), card("requests", rate(asked.per)),
      card("errors", rate(failed.per), failed.per > 0 ? "bad" : undefined), card("CPU cores busy", cpu.per == null ? "–" : cpu.per.toFixed(2)),
      card("memory of " + bytes(node.memory_max), bytes(node.memory_used)), card("data", bytes(node.load)), card("up for", seconds(node.uptime_seconds)),
      card("Helenus " + node.helenus_version, "as " + node.release_version), card("exceptions", number(node.exceptions), node.exceptions ? "bad" : "good")),
    table("Latencies of clients", [
      ["Requests", (r) => r.title], ["a second", (r) => rate(r.now.per), "n"], ["last minutes", (r) => line(r.now.history, r.title + " a second")],
      ["p50 now", (r) => micros(percentile(r.recent, 0.5)), "n"], ["p99 now", (r) => micros(percentile(r.recent, 0.99)), "n"],
      ["p50", (r) => micros(percentile(r.all.buckets, 0.5)), "n"], ["p99", (r) => micros(percentile(r.all.buckets, 0.99)), "n"],
      ["p99.9", (r) => micros(percentile(r.all.buckets, 0.999)), "n"], ["all since the start", (r) => bars(r.all.buckets, "Distribution of latencies: " + r.title)]], rows),
    table("Pools", [["Pool", (p) => p.name], ["at work", (p) => number(p.active), "n"], ["waiting", (p) => number(p.pending), "n"],
      ["done", (p) => number(p.completed), "n"], ["refused", (p) => number(p.all_time_blocked), "n"]], pools),
    table("Memory", [["what", (m) => m[0]], ["bytes", (m) => bytes(m[1]), "n"]], metrics.memory.filter(([name]) => !name.endsWith("_max"))),
  ];
}

async function ring() {
  const [info, hints, versions] = await Promise.all([call("/api/ring"), call("/api/pending_hints"), call("/api/schema_versions")]);
  const distinct = new Set(versions.map((v) => v.version).filter(Boolean));
  const up = info.endpoints.filter((e) => e.is_up).length;
  return [
    cards(card("nodes up", up + " of " + info.endpoints.length, up === info.endpoints.length ? "good" : "bad"),
      card("schema versions", distinct.size, distinct.size > 1 ? "bad" : "good"), card("nodes with hints waiting", hints.length, hints.length ? "warn" : "good")),
    table("Nodes", [
      ["Address", (e) => e.address, "", (e) => e.address], ["", (e) => make("span", { class: e.is_up ? "good" : "bad" }, e.is_up ? "up" : "DOWN")],
      ["state", (e) => e.state, "", (e) => e.state], ["data center", (e) => e.data_center, "", (e) => e.data_center], ["rack", (e) => e.rack, "", (e) => e.rack],
      ["load", (e) => bytes(e.load), "n", (e) => e.load], ["owns", (e) => percent(e.owns), "n", (e) => e.owns], ["tokens", (e) => number(e.tokens.length), "n"],
      ["version", (e) => e.release_version], ["schema", (e) => code((e.schema_version || "–").slice(0, 8))], ["host id", (e) => code(e.host_id)]], info.endpoints),
    info.note ? soft(info.note) : null,
    table("Hints that wait", [["for", (h) => h.address || h.host_id], ["status", (h) => h.status], ["files", (h) => number(h.files), "n"],
      ["oldest", (h) => time(h.oldest_millis)], ["newest", (h) => time(h.newest_millis)]], hints, "No hints wait."),
  ];
}

async function tables() {
  const all = await call("/api/tables");
  const name = (t) => t.keyspace + "." + t.table;
  const rows = all.map((t) => ({ ...t, reads: change("r" + name(t), count(t.read_latency)), writes: change("w" + name(t), count(t.write_latency)),
    recent_read: window_of("rl" + name(t), t.read_latency), recent_write: window_of("wl" + name(t), t.write_latency) }));
  const p99 = (b) => percentile(b, 0.99);
  return [
    table("Load and latencies by table", [
      ["Table", (t) => name(t), "", name], ["reads", (t) => rate(t.reads.per), "n", (t) => t.reads.per], ["p99 now", (t) => micros(p99(t.recent_read)), "n", (t) => p99(t.recent_read)],
      ["writes", (t) => rate(t.writes.per), "n", (t) => t.writes.per], ["p99 now", (t) => micros(p99(t.recent_write)), "n", (t) => p99(t.recent_write)],
      ["reads, p50", (t) => micros(percentile(t.read_latency.buckets, 0.5)), "n", (t) => percentile(t.read_latency.buckets, 0.5)],
      ["p99", (t) => micros(p99(t.read_latency.buckets)), "n", (t) => p99(t.read_latency.buckets)],
      ["data", (t) => bytes(t.space_used_live), "n", (t) => t.space_used_live], ["SSTables", (t) => number(t.sstable_count), "n", (t) => t.sstable_count],
      ["SSTables a read, p99", (t) => number(p99(t.sstables_per_read.buckets) || 0), "n", (t) => p99(t.sstables_per_read.buckets)],
      ["memtables", (t) => bytes(t.memtable_data_size), "n", (t) => t.memtable_data_size]], rows)];
}

async function slow() {
  const [answer, session] = await Promise.all([call("/api/slow_statements"), call("/console/session")]);
  const explain = (s) => session.queries_enabled ? make("button", { type: "button", onclick: () => { wanted.query = "EXPLAIN " + s.statement; location.hash = "query"; } }, "EXPLAIN") : null;
  return [
    soft(answer.threshold_millis == null ? "No statement counts as slow: slow_query_log_timeout is off." :
      `Statements that took more than ${answer.threshold_millis} ms (slow_query_log_timeout), as they were reported to the log, the newest first.` +
      (session.queries_enabled ? " EXPLAIN opens the statement in the query tab; put values in the places of question marks." : "")),
    table("Slow statements", [
      ["Statement", (s) => code(s.statement)], ["reported", (s) => time(s.at_millis), "", (s) => s.at_millis], ["times", (s) => number(s.count), "n", (s) => s.count],
      ["mean", (s) => micros(s.mean_micros), "n", (s) => s.mean_micros], ["longest", (s) => micros(s.max_micros), "n", (s) => s.max_micros], ["rows", (s) => number(s.rows), "n", (s) => s.rows],
      ["tombstones", (s) => make("span", { class: s.tombstones > s.rows ? "warn" : undefined }, number(s.tombstones)), "n", (s) => s.tombstones],
      ["SSTables", (s) => number(s.sstables), "n", (s) => s.sstables], ["read", (s) => bytes(s.bytes), "n", (s) => s.bytes], ["", explain]], answer.statements, "No statement was slow since the start."),
  ];
}

async function work() {
  const [compactions, history, streams, sessions, schedule] = await Promise.all([
    call("/api/compactions"), call("/api/compaction_history"), call("/api/streams"), call("/api/repair_sessions?all=false"), call("/api/repair_schedule")]);
  const last = history.sort((a, b) => b.compacted_at - a.compacted_at).slice(0, 15);
  const pending = compactions.pending.reduce((sum, [, , n]) => sum + n, 0);
  const way = (w, label) => w.files ? make("span", {}, bar(w.bytes_done, w.bytes, label), ` ${bytes(w.bytes_done)} of ${bytes(w.bytes)}, ${w.files_done} of ${w.files} files`) : "–";
  return [
    cards(card("compactions run", compactions.running.length + " of " + compactions.concurrent_compactors), card("compactions wait", number(pending), pending > 20 ? "warn" : undefined),
      card("compacted since the start", bytes(compactions.bytes_compacted)), card("stopped or failed", number(compactions.aborted), compactions.aborted ? "warn" : "good"),
      card("streams", streams.length), card("incremental repairs", sessions.length), card("scheduled repairs", schedule.off ? "off" : schedule.phase)),
    table("Compactions that run", [["What", (c) => c.kind], ["table", (c) => c.keyspace + "." + c.table], ["SSTables", (c) => number(c.sstables), "n"],
      ["progress", (c) => bar(c.completed, c.total, `${c.kind} of ${c.keyspace}.${c.table}`)], ["of", (c) => bytes(c.total), "n"]], compactions.running, "No compaction runs."),
    table("Streams", [["Peer", (s) => s.peer], ["for", (s) => s.operation], ["since", (s) => seconds(s.millis / 1000), "n"], ["receiving", (s) => way(s.receiving, "received from " + s.peer)],
      ["sending", (s) => way(s.sending, "sent to " + s.peer)]], streams, "Nothing is streamed."),
    table("Sessions of incremental repairs", [["Session", (s) => code(s.id)], ["state", (s) => s.state], ["idle", (s) => seconds(s.idle_seconds), "n"], ["coordinator", (s) => s.coordinator],
      ["participants", (s) => s.participants.join(", ")]], sessions, "No session runs."),
    schedule.off ? soft("Scheduled repairs are off: " + schedule.off) : table("Scheduled repairs", [["Table", (t) => t.keyspace + "." + t.table],
      ["repaired", (t) => t.age_seconds == null ? "never" : seconds(t.age_seconds) + " ago", "n"], ["within (gc_grace)", (t) => seconds(t.grace_seconds), "n"],
      ["due", (t) => number(t.due), "n"], ["", (t) => t.age_seconds != null && t.age_seconds > t.grace_seconds ? make("span", { class: "bad" }, "LATE") : ""]], schedule.tables),
    table("Compactions that ended", [["Table", (c) => c.keyspace + "." + c.table], ["ended", (c) => time(c.compacted_at)], ["read", (c) => bytes(c.bytes_in), "n"], ["written", (c) => bytes(c.bytes_out), "n"],
      ["kept", (c) => percent(c.bytes_out / c.bytes_in), "n"]], last, "No compaction has ended."),
  ];
}

const wanted = { query: "", table: "", text: "", level: "INFO", samples: null, answer: null, keyspace: "" };
const typed = (name, event = "input") => ({ ["on" + event]: (e) => { wanted[name] = e.target.value; } });

function tombstones_of(all) {
  return table("Tombstones by table", [
    ["Table", (t) => t.keyspace + "." + t.table, "", (t) => t.keyspace + "." + t.table],
    ["may be purged", (t) => percent(t.droppable_tombstone_ratio), "n", (t) => t.droppable_tombstone_ratio],
    ["tombstones a read, p50", (t) => number(percentile(t.tombstones_per_read.buckets, 0.5) || 0), "n", (t) => percentile(t.tombstones_per_read.buckets, 0.5) || 0],
    ["p99", (t) => number(percentile(t.tombstones_per_read.buckets, 0.99) || 0), "n", (t) => percentile(t.tombstones_per_read.buckets, 0.99) || 0],
    ["live rows a read, p99", (t) => number(percentile(t.live_rows_per_read.buckets, 0.99) || 0), "n", (t) => percentile(t.live_rows_per_read.buckets, 0.99) || 0],
    ["warned", (t) => number(t.tombstone_warnings), "n", (t) => t.tombstone_warnings], ["failed", (t) => number(t.tombstone_failures), "n", (t) => t.tombstone_failures],
    ["", (t) => make("button", { type: "button", onclick: () => { wanted.table = t.keyspace + "." + t.table; show(true); } }, "why not purged?")]], all);
}
async function tombstones() {
  const all = await call("/api/tables");
  const parts = [tombstones_of(all)];
  if (wanted.table) {
    const [keyspace, name] = wanted.table.split(".");
    const texts = await call("/api/tombstones?" + query({ keyspace, table: name, top: 5 }));
    parts.unshift(make("section", { "aria-label": "Why tombstones stay" }, make("h3", {}, "Why tombstones of " + wanted.table + " are still there"),
      texts.length ? texts.map((text) => make("pre", {}, text)) : soft("The table has no SSTables with tombstones."),
      make("button", { type: "button", onclick: () => { wanted.table = ""; show(); } }, "Close")));
  }
  return parts;
}

async function partitions() {
  const all = await call("/api/tables");
  const parts = [table("Partitions by size", [
    ["Table", (t) => t.keyspace + "." + t.table, "", (t) => t.keyspace + "." + t.table], ["partitions (estimate)", (t) => number(t.estimated_partitions), "n", (t) => t.estimated_partitions],
    ["mean", (t) => bytes(t.mean_partition_size), "n", (t) => t.mean_partition_size], ["p99", (t) => bytes(percentile(t.partition_size.buckets, 0.99)), "n", (t) => percentile(t.partition_size.buckets, 0.99)],
    ["largest", (t) => make("span", { class: t.max_partition_size > 100 * 1048576 ? "bad" : undefined }, bytes(t.max_partition_size)), "n", (t) => t.max_partition_size],
    ["sizes", (t) => bars(t.partition_size.buckets, "Sizes of partitions of " + t.table, bytes)]], all)];
  const measure = async (event) => {
    event.target.disabled = true; event.target.textContent = "counting for two seconds …";
    try { wanted.samples = await call("/console/sample", null); } catch (error) { refused(error); }
    show(true);
  };
  parts.push(make("h3", {}, "Partitions by heat"), make("p", {}, make("button", { type: "button", id: "heat", onclick: measure }, wanted.samples ? "Count again" : "Count for two seconds"),
    " Counts which partitions are read and written, with the costs of the dearest."));
  for (const [name, samples] of wanted.samples || []) if (samples.length) {
    parts.push(table(name.toLowerCase().replaceAll("_", " "), [["Partition", (s) => code(s.value)], ["table", (s) => s.table], ["count", (s) => number(s.count), "n"], ["at most too high by", (s) => number(s.error), "n"]], samples));
  }
  if (wanted.samples && !wanted.samples.some(([, list]) => list.length)) parts.push(soft("Nothing was read or written meanwhile."));
  return parts;
}

async function caches() {
  const node = await call("/api/node");
  const list = [["chunks", node.chunk_cache], ["keys", node.key_cache], ["rows", node.row_cache]].map(([name, c]) => ({ name, ...c }));
  return [table("Caches", [["Cache", (c) => c.name], ["entries", (c) => number(c.entries), "n"], ["used", (c) => c.capacity ? make("span", {}, bar(c.size, c.capacity, "Cache of " + c.name), " of " + bytes(c.capacity)) : "off"],
    ["lookups", (c) => number(c.requests), "n"], ["hits since the start", (c) => percent(c.requests ? c.hits / c.requests : null), "n"],
    ["hits now", (c) => { const [h, r] = [change("h" + c.name, c.hits), change("q" + c.name, c.requests)]; return percent(r.per ? h.per / r.per : null); }, "n"]], list)];
}

async function commitlog() {
  const { commitlog: log } = await call("/api/metrics");
  const waited = window_of("sync", log.waiting_on_commit), syncs = change("syncs", log.syncs);
  return [cards(card("size", bytes(log.size)), card("segments", number(log.segments)), card("syncs", rate(syncs.per)), card("records that wait for a sync", number(log.pending)),
    card("wait for a sync, p50 now", micros(percentile(waited, 0.5))), card("p99 now", micros(percentile(waited, 0.99))), card("p99 since the start", micros(percentile(log.waiting_on_commit.buckets, 0.99)))),
    make("h3", {}, "Waits for a sync since the start"), bars(log.waiting_on_commit.buckets, "Distribution of waits for a sync") || soft("Nothing was written yet.")];
}

async function schema() {
  const keyspaces = await call("/api/keyspaces");
  const names = keyspaces.map((k) => k.name).sort();
  if (!names.includes(wanted.keyspace)) wanted.keyspace = names.find((n) => !n.startsWith("system")) || names[0];
  const objects = await call("/api/schema?" + query({ keyspace: wanted.keyspace }));
  const select = make("select", { id: "keyspace", onchange: (e) => { wanted.keyspace = e.target.value; show(true); } },
    names.map((name) => make("option", { value: name, selected: name === wanted.keyspace }, name)));
  return [make("form", { class: "row" }, make("label", {}, "Keyspace", select)),
    objects.map((o) => make("details", { open: o.kind === "keyspace" }, make("summary", {}, o.kind + " ", make("b", {}, o.name)), make("pre", {}, o.create)))];
}

async function ask() {
  const session = await call("/console/session");
  if (!session.queries_enabled) return [soft("Queries are off. They are allowed by console_queries_enabled: true in the configuration (--set console_queries_enabled=true), and then read only: SELECT, DESCRIBE, EXPLAIN.")];
  if (session.needs_login && !session.user) throw new Refused(401, "log in first");
  const run = async (event) => {
    event.preventDefault();
    const out = $("answer");
    out.replaceChildren(soft("running …"));
    try { wanted.answer = await call("/console/query", { query: wanted.query }); out.replaceChildren(...result(wanted.answer)); } catch (error) { out.replaceChildren(make("p", { class: "bad", role: "alert" }, error.message)); if (error.status === 401) login(); }
  };
  const text = make("textarea", { id: "text", spellcheck: "false", ...typed("query"), onkeydown: (e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) run(e); } });
  text.value = wanted.query || "SELECT * FROM system.local";
  wanted.query = text.value;
  return [make("form", { onsubmit: run }, make("label", { for: "text" }, "A statement that reads: SELECT, DESCRIBE, EXPLAIN, EXPLAIN ANALYZE of a SELECT"), text, make("p", {}, make("button", { type: "submit" }, "Run (Ctrl+Enter)"))),
    make("div", { id: "answer", "aria-live": "polite" }, wanted.answer ? result(wanted.answer) : [])];
}
const result = (answer) => [
  soft(`${number(answer.rows.length)} rows${answer.has_more ? ", and there are more" : ""}, ${micros(answer.micros)}`), ...answer.warnings.map((w) => make("p", { class: "warn" }, w)),
  answer.columns.length ? table("Answer", answer.columns.map(([name, type], i) => [name, (row) => row[i] == null ? make("span", { class: "soft" }, "null") : code(row[i]), /int|float|double|decimal|counter/.test(type) ? "n" : ""]), answer.rows, "No rows.") : soft("No rows.")];

async function logs() {
  const lines = (await call("/api/log?" + query({ count: 300, level: wanted.level, text: wanted.text }))).reverse();
  const levels = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];
  const kind = { ERROR: "bad", WARN: "warn" };
  return [make("form", { class: "row", onsubmit: (e) => { e.preventDefault(); show(true); } },
    make("label", {}, "Level", make("select", { id: "level", onchange: (e) => { wanted.level = e.target.value; show(true); } }, levels.map((l) => make("option", { value: l, selected: l === wanted.level }, l)))),
    make("label", {}, "Lines that hold", make("input", { id: "holds", value: wanted.text, ...typed("text") })), make("button", { type: "submit" }, "Find")),
  table("Log, the newest line first", [["time", (l) => time(l.at_millis)], ["level", (l) => make("span", { class: kind[l.level] }, l.level)], ["of", (l) => l.logger], ["line", (l) => code(l.message)]], lines, "No such line.")];
}

// name, title, function, whether the section fills itself again
const SECTIONS = [
  ["overview", "Overview", overview, true], ["ring", "Ring", ring, true], ["tables", "Tables", tables, true], ["slow", "Slow statements", slow, false], ["work", "Compactions, streams, repairs", work, true],
  ["tombstones", "Tombstones", tombstones, false], ["partitions", "Partitions", partitions, false], ["caches", "Caches", caches, true], ["commitlog", "Commit log", commitlog, true],
  ["schema", "Schema", schema, false], ["query", "Query", ask, false], ["logs", "Log", logs, false],
];

// ---- the loop ----

let timer = 0, failures = 0, answered = Date.now(), turn = 0;
const current = () => SECTIONS.find(([name]) => name === location.hash.slice(1)) || SECTIONS[0];

function refused(error) {
  if (error instanceof Refused && error.status === 401) { login(); return; }
  $("trouble").hidden = false;
  $("trouble").textContent = error.message;
}

// Fills the section. The focus stays where it was, by the id of the element that had it.
async function show(asked) {
  clearTimeout(timer);
  const mine = ++turn, [name, title, fill, live] = current();
  document.querySelectorAll("nav a").forEach((a) => a.hash === "#" + name ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current"));
  if ($("title").textContent !== title) { $("title").textContent = title; $("content").replaceChildren(soft("loading …")); document.title = title + " – Helenus"; asked = true; }
  try {
    const [parts, node] = await Promise.all([fill(), call("/api/node")]);
    if (mine !== turn) return;
    const focus = document.activeElement && document.activeElement.id, scroll = [...document.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
    $("content").replaceChildren(...parts.flat().filter(Boolean));
    document.querySelectorAll(".scroll").forEach((s, i) => { s.scrollLeft = scroll[i] || 0; });
    if (focus && $(focus) && $("content").contains($(focus))) $(focus).focus();
    $("content").classList.remove("stale");
    $("trouble").hidden = true;
    $("cluster").textContent = node.cluster_name;
    $("where").textContent = `${node.address} · ${node.data_center} ${node.rack}`;
    if (failures || asked || !$("state").dataset.mode || $("state").dataset.mode !== node.mode) { $("state").dataset.mode = node.mode; $("state").textContent = `${node.mode.toLowerCase()}, clients are ${node.native_transport_active ? "served" : "NOT served"}`; }
    failures = 0; answered = Date.now();
  } catch (error) {
    if (mine !== turn) return;
    $("content").classList.add("stale");
    if (error instanceof Refused && error.status !== 503) { refused(error); if ($("content").textContent === "loading …") $("content").replaceChildren(soft(error.message)); }
    else {
      failures += 1;
      $("state").textContent = "no answer"; $("state").dataset.mode = "";
      $("trouble").hidden = false;
      $("trouble").textContent = (error instanceof Refused ? error.message : "The node does not answer") + ` (since ${time(answered)}). The figures below are old; this page goes on trying.`;
    }
  }
  if (failures || (live && $("live").checked)) timer = setTimeout(show, Math.min(PERIOD_MAX, PERIOD * 2 ** Math.min(failures, 4)));
}

async function who() {
  try {
    const session = await call("/console/session");
    $("who").textContent = session.user || "";
    $("logout").hidden = !session.user;
  } catch { /* the loop says that the node does not answer */ }
}
function login() { if (!$("login").open) $("login").showModal(); $("user").focus(); }

$("login-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await call("/console/login", { user: $("user").value, password: $("password").value });
    $("password").value = ""; $("login-error").textContent = ""; $("login").close();
    await who(); show(true);
  } catch (error) { $("login-error").textContent = error.message; }
});
$("login-cancel").addEventListener("click", () => $("login").close());
$("logout").addEventListener("click", async () => { await call("/console/logout", null).catch(refused); await who(); show(true); });
$("live").addEventListener("change", () => show(true));
$("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* a browser without storage forgets it */ }
});
try { const theme = localStorage.getItem("theme"); if (theme) document.documentElement.dataset.theme = theme; } catch { /* as above */ }
const asked_theme = new URLSearchParams(location.search).get("theme");
if (asked_theme) document.documentElement.dataset.theme = asked_theme === "dark" ? "dark" : "light";
$("tabs").replaceChildren(...SECTIONS.map(([name, title]) => make("li", {}, make("a", { href: "#" + name }, title))));
addEventListener("hashchange", () => { $("trouble").hidden = true; show(true); $("view").focus({ preventScroll: true }); });
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); $("view").focus(); });
who();
show(true);
