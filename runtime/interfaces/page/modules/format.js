/** Numbers, sizes and times as people read them: ages by the node's clock, exact times in the reader's zone. */

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
// Made once: to make a formatter takes longer than to draw a row.
const TIME_OF_DAY = new Intl.DateTimeFormat([], {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const DAY = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });
const EXACT = new Intl.DateTimeFormat([], { dateStyle: "full", timeStyle: "long", hourCycle: "h23" });
const SIZES = ["bytes", "KB", "MB", "GB", "TB", "PB"];
const UNITS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
];
const WORDS = { d: "day", h: "hour", m: "minute", s: "second" };

let ahead = 0;

/** Learn how far the node's clock is ahead of the browser's, in ms. */
export function setNodeTime(nodeMs) {
  ahead = nodeMs - Date.now();
}

/** The time on the node, in ms since 1970. */
export function nodeNow() {
  return Date.now() + ahead;
}

/** A count, whole up to a million. */
export function count(number) {
  if (number === null || number === undefined) return "";
  return Math.abs(number) < 1e6 ? WHOLE.format(number) : SHORT.format(number).replace(/([A-Z])$/, " $1");
}

export function rate(number) {
  if (number === null || number === undefined) return "";
  return number > 0 && number < 1 ? "< 1" : count(number);
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return "";
  let power = 0;
  for (; bytes >= 1000 && power < SIZES.length - 1; power += 1) bytes /= 1000;
  return `${power && bytes < 100 ? bytes.toFixed(1) : WHOLE.format(bytes)} ${SIZES[power]}`;
}

/** "1 task", "2 tasks". */
export function plural(number, noun, many = `${noun}s`) {
  return `${count(number)} ${number === 1 ? noun : many}`;
}

/** A duration in its largest unit: "41 m"; below a second with digits. */
export function span(ms) {
  if (ms === null || ms === undefined) return "";
  for (const [unit, letter] of UNITS) {
    if (ms >= unit) return `${Math.floor(ms / unit)} ${letter}`;
  }
  return ms > 0 ? `${(ms / 1000).toFixed(ms < 100 ? 2 : 1)} s` : "0 s";
}

/** A duration in words: "41 minutes". */
export function spanWords(ms) {
  const [number, letter] = span(Math.max(1_000, ms)).split(" ");
  return plural(Number(number), WORDS[letter]);
}

/** A duration of a rebalance, in seconds. */
export function seconds(ms) {
  if (ms === null || ms === undefined) return "";
  return ms >= 100_000 ? span(ms) : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

export function age(ms) {
  return ms ? `${span(Math.max(1_000, nodeNow() - ms))} ago` : "";
}

/** The time of day; with the day, if that is not today. */
export function clock(ms) {
  const time = new Date(ms);
  const isToday = time.toDateString() === new Date().toDateString();
  return isToday ? TIME_OF_DAY.format(time) : `${DAY.format(time)} ${TIME_OF_DAY.format(time)}`;
}

/** The exact time, in the reader's zone, with the zone. */
export function exact(ms) {
  return EXACT.format(ms);
}

/** How far a connector is behind, in the best of the units that its source knows. */
export function behind(row) {
  const lag = row.lag;
  if (!lag) return "";
  if (row.behind_ms >= 60_000) return `${span(row.behind_ms)} behind`;
  if (lag.records) return plural(lag.records, "record");
  if (lag.bytes) return size(lag.bytes);
  if (lag.ranges) return plural(lag.ranges, "part");
  return "0";
}
