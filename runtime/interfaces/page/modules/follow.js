/**
 * Follows a stream of events for good: it is opened again whenever it ends, behind the last event that came.
 *
 * `EventSource` would do the same, but cannot say who asks.
 */

const AGAIN_MS = 500;
const SLOWEST_MS = 3_000;
const SILENCE_MS = 40_000;

/**
 * Tell each event as `{kind, data}`, with `kind` its name, and `{kind: "lost", status}` when the stream has ended.
 *
 * The first event of a stream is `open`: all that happened behind its `sequence` follows, which is `after` unless
 * there is a `gap`.
 */
export async function follow(url, headers, after, tell) {
  let last = String(after);
  let pause = AGAIN_MS;
  for (;;) {
    let status = 0;
    const ends = new AbortController();
    const watch = watchdog(ends);
    try {
      const resumed = last ? { "Last-Event-ID": last } : {};
      const answer = await fetch(url, {
        headers: { ...headers, ...resumed, Accept: "text/event-stream" },
        signal: ends.signal,
      });
      status = answer.status;
      if (answer.ok) {
        pause = AGAIN_MS;
        for await (const event of eventsOf(answer.body, watch)) {
          last = event.id || last;
          tell({ kind: event.name, data: JSON.parse(event.data) });
        }
      }
    } catch {
      status ||= 0; // it went away: the same as if it had ended
    } finally {
      watch.stop();
    }
    tell({ kind: "lost", status });
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(SLOWEST_MS, pause * 1.5);
  }
}

/** End a stream that is silent for longer than the node ever is. */
function watchdog(ends) {
  let timer;
  const restart = () => {
    clearTimeout(timer);
    timer = setTimeout(() => ends.abort(), SILENCE_MS);
  };
  restart();
  return { restart, stop: () => clearTimeout(timer) };
}

async function* eventsOf(body, watch) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    watch.restart();
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = parse(block);
      if (event.data) yield event;
    }
  }
}

function parse(block) {
  const event = { id: "", name: "message", data: "" };
  for (const line of block.split("\n")) {
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (field === "id") event.id = value;
    if (field === "event") event.name = value;
    if (field === "data") event.data += value;
  }
  return event;
}
