/** A config as text: JSON, or the flat YAML that `fairlead create -f` reads, a key and its value in each line. */

const PLAIN = /^[A-Za-z0-9_./:@%+,][A-Za-z0-9_./:@%+, *()=-]*$/;
const AMBIGUOUS = /^(true|false|null|yes|no|on|off|~|[-+.\d].*)$/i;

export function write(config, language) {
  if (language === "json") return JSON.stringify(config, null, 2);
  return (
    Object.entries(config)
      .map(([key, value]) => `${key}: ${plain(value)}`)
      .join("\n") + "\n"
  );
}

/** Read a config; throws an `Error` that names the line. */
export function parse(text, language) {
  const config = language === "json" ? parseJson(text) : parseLines(text);
  for (const [key, value] of Object.entries(config)) {
    if (value !== null && typeof value === "object")
      throw new Error(`${key}: a value is a text, a number, true or false`);
    config[key] = String(value ?? "");
  }
  return config;
}

function parseJson(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw new Error(`this is no JSON yet: ${error.message}`);
  }
  if (found === null || typeof found !== "object" || Array.isArray(found)) throw new Error("a config is a JSON object");
  return "config" in found && typeof found.config === "object" ? found.config : found;
}

function parseLines(text) {
  const config = {};
  text.split("\n").forEach((line, at) => {
    if (!line.trim() || line.trim().startsWith("#")) return;
    const [, key, value] = /^\s*([^\s:#][^:]*?)\s*:(?:\s+(.*?))?\s*$/.exec(line) ?? [];
    if (key === undefined) throw new Error(`line ${at + 1} has no key: "KEY: VALUE" is expected`);
    config[key] = unquote(value ?? "", at);
  });
  return config;
}

function unquote(value, at) {
  try {
    if (value.startsWith('"')) return JSON.parse(value);
  } catch {
    throw new Error(`line ${at + 1}: the quotes are not closed yet`);
  }
  if (/^'.*'$/.test(value)) return value.slice(1, -1).replaceAll("''", "'");
  return value.replace(/\s+#.*$/, "");
}

function plain(value) {
  return PLAIN.test(value) && !AMBIGUOUS.test(value) && !value.includes(": ") && !value.includes(" #")
    ? value
    : JSON.stringify(value);
}
