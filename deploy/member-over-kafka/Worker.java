import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.PushbackInputStream;
import java.io.RandomAccessFile;
import java.io.StringWriter;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

/**
 * An example worker of a connect group over Kafka's wire protocol, with plain sockets.
 *
 * <p>{@code java Worker.java HOST PORT GROUP} runs connectors of the class MemberConnector that
 * demand the tag `lines`: lines of the files in `member.input` go to files in `member.output`,
 * each exactly once. On SIGTERM it leaves.
 */
public final class Worker {
    static final int HEARTBEAT = 10848, ASK = 10851, JOIN = 0, LEAVE = -1;
    static final int MARGIN_MS = 1000, WAIT_MS = 5000, REBALANCE_MS = 60000, BATCH_BYTES = 1 << 16;
    static final int SESSION = 2, PROCESS = 4, REASON = 11; // tags of answers
    static final Set<Integer> FENCED = Set.of(25, 69, 110, 20002);
    static final Set<Integer> ASK_AGAIN = Set.of(14, 15, 16, 111);
    static final String ABLE = "{\"tags\":[\"lines\"],\"tagged_only\":true}"; // what it may run

    /** A task by connector and number; -1 is the connector itself. */
    record Key(String connector, int task) {
        @Override
        public String toString() {
            return task < 0 ? connector : connector + "-" + task;
        }
    }

    /** The group has fenced the member, or one of its tokens. */
    @SuppressWarnings("serial")
    static final class GivenToOthers extends RuntimeException {
        GivenToOthers(String why) {
            super(why);
        }
    }

    static Map<String, Object> map(Object... pairs) {
        var made = new LinkedHashMap<String, Object>();
        for (int at = 0; at < pairs.length; at += 2) made.put((String) pairs[at], pairs[at + 1]);
        return made;
    }

    /** Encode values: s text, z a size, x bytes, R resources, m msgpack, and numbers. */
    static byte[] pack(String form, Object... values) throws IOException {
        var bytes = new ByteArrayOutputStream();
        var out = new DataOutputStream(bytes);
        for (int at = 0; at < values.length; at++) {
            var value = values[at];
            switch (form.charAt(at)) {
                case 'b' -> out.write((int) value);
                case 'h' -> out.writeShort((int) value);
                case 'i' -> out.writeInt((int) value);
                case 'q' -> out.writeLong((long) value);
                case 'x' -> out.write((byte[]) value);
                case 'R' -> packResources(out, (Set<?>) value);
                case 'm' -> packMsgpack(out, value);
                case 's' -> {
                    var data = value instanceof String text ? text.getBytes(UTF_8) : (byte[]) value;
                    out.write(data == null ? pack("z", 0) : pack("zx", data.length + 1, data));
                }
                default -> {
                    int left = (int) value;
                    for (; left > 127; left >>>= 7) out.write(left & 127 | 128);
                    out.write(left);
                }
            }
        }
        return bytes.toByteArray();
    }

    static void packResources(DataOutputStream out, Set<?> owned) throws IOException {
        var keys = owned.stream().map(each -> (Key) each).toList();
        var tasks = keys.stream().filter(each -> each.task >= 0).toList();
        out.write(pack("z", keys.size() - tasks.size() + 1));
        for (var each : keys) if (each.task < 0) out.write(pack("s", each.connector));
        out.write(pack("z", tasks.size() + 1));
        for (var each : tasks) out.write(pack("szib", each.connector, 2, each.task, 0));
        out.write(0);
    }

    static void packMsgpack(DataOutputStream out, Object value) throws IOException {
        if (value == null) out.write(0xC0);
        else if (value instanceof Number number) out.write(pack("bq", 0xD3, number.longValue()));
        else if (value instanceof String text)
            out.write(pack("bix", 0xDB, text.getBytes(UTF_8).length, text.getBytes(UTF_8)));
        else if (value instanceof Key key) packMsgpack(out, List.of(key.connector, key.task));
        else if (value instanceof List<?> list) {
            out.write(pack("bi", 0xDD, list.size()));
            for (var each : list) packMsgpack(out, each);
        } else {
            var pairs = ((Map<?, ?>) value).entrySet();
            out.write(pack("bi", 0xDF, pairs.size()));
            for (var each : pairs) out.write(pack("mm", each.getKey(), each.getValue()));
        }
    }

    /** A response, which is decoded from its beginning to its end. */
    record In(ByteBuffer data) {
        int size() {
            int part = data.get();
            return part >= 0 ? part : (part & 127) + (size() << 7);
        }

        byte[] take(int count) {
            var taken = new byte[Math.max(0, count)];
            data.get(taken);
            return taken;
        }

        String text() {
            return new String(take(size() - 1), UTF_8);
        }

        Map<Integer, In> tags() {
            var tags = new HashMap<Integer, In>();
            for (int left = size(); left > 0; left--)
                tags.put(size(), new In(ByteBuffer.wrap(take(size()))));
            return tags;
        }

        Set<Key> resources() {
            var found = new HashSet<Key>();
            for (int left = size(); left > 1; left--) found.add(new Key(text(), -1));
            for (int left = size(); left > 1; left--, tags()) {
                var name = text();
                for (int n = size(); n > 1; n--) found.add(new Key(name, data.getInt()));
            }
            tags();
            return found;
        }

        long number(int width) {
            long number = 0;
            for (; width > 0; width--) number = number << 8 | data.get() & 255;
            return number;
        }

        Object msgpack() {
            int kind = data.get() & 255;
            if (kind < 0x80 || kind >= 0xE0) return (long) (byte) kind;
            if (kind >= 0xC0 && kind <= 0xC3) return kind == 0xC0 ? null : kind == 0xC3;
            if (kind >= 0xCC && kind <= 0xD3) return number(1 << (kind & 3)); // none is below 0
            if (kind >= 0xA0 && kind < 0xDC) {
                long size = kind < 0xC0 ? kind & 31 : number(1 << kind - 0xD9);
                return new String(take((int) size), UTF_8);
            }
            long count = kind < 0xA0 ? kind & 15 : number(2 << (kind & 1));
            var list = new ArrayList<Object>();
            var pairs = new LinkedHashMap<Object, Object>();
            boolean isMap = kind < 0x90 || kind >= 0xDE;
            for (; count > 0; count--)
                if (isMap) pairs.put(msgpack(), msgpack());
                else list.add(msgpack());
            return isMap ? pairs : list;
        }
    }

    /** A part of an answer: a value of a map, or of a list. */
    @SuppressWarnings("unchecked")
    static <T> T in(Object whole, Object... path) {
        for (var at : path)
            if (whole instanceof List<?> list) whole = list.get((int) at);
            else whole = ((Map<?, ?>) whole).get(at);
        return (T) whole;
    }

    /** A connection, on which requests are answered in their order. */
    static final class Line {
        final InetSocketAddress place;
        Socket open;
        PushbackInputStream input;

        Line(String host, String port) {
            place = new InetSocketAddress(host, Integer.parseInt(port));
        }

        void send(int key, byte[] body) throws IOException {
            if (open == null) {
                open = new Socket();
                open.connect(place, WAIT_MS);
                input = new PushbackInputStream(open.getInputStream());
            }
            var header = pack("hhihxb", key, 0, 0, 7, "example".getBytes(UTF_8), 0);
            var frame = pack("ixx", header.length + body.length, header, body);
            open.getOutputStream().write(frame);
        }

        boolean isAnswered(int waitMs) throws IOException {
            open.setSoTimeout(waitMs);
            try {
                int first = input.read();
                if (first < 0) throw new EOFException("the connection was closed");
                input.unread(first);
                return true;
            } catch (SocketTimeoutException late) {
                return false;
            }
        }

        In receive() throws IOException {
            open.setSoTimeout(WAIT_MS);
            var data = new DataInputStream(input);
            var frame = new byte[data.readInt()];
            data.readFully(frame);
            return new In(ByteBuffer.wrap(frame).position(5)); // the number of the request, no tags
        }
    }

    /** Reads the lines of its share of the files; each batch becomes a file, once it counts. */
    final class Task {
        final Map<String, Object> offsets = new HashMap<>();
        final Key key;
        final List<Object> token;
        final Path source, sink, staged;
        final int share, of;
        int batch = 0;

        Task(Key key, Object work) throws IOException {
            this.key = key;
            token = in(work, "token");
            share = Integer.parseInt(in(work, "config", "share"));
            of = Integer.parseInt(in(work, "config", "of"));
            source = Path.of(Worker.<String>in(work, "connector_config", "member.input"));
            sink = Path.of(Worker.<String>in(work, "connector_config", "member.output"));
            staged = sink.resolve(".staged/" + key.task + "@" + key.connector.replace('/', '_'));
            Files.createDirectories(staged);
            List<?> waiting = in(readOffsets(List.of()), "unpublished");
            for (; !waiting.isEmpty(); waiting = in(readOffsets(List.of()), "unpublished"))
                for (var each : waiting) // the last owner may have died
                    publish(in(each, "commit_id"), in(each, "manifest", "staging"));
            for (var each : filesIn(staged)) Files.deleteIfExists(staged.resolve(each));
        }

        Object readOffsets(List<String> files) {
            var partitions = files.stream().map(each -> map("file", each)).toList();
            var about = map("connector", key.connector, "task", key.task, "partitions", partitions);
            return ask("ReadOffsets", about);
        }

        /** Stage the next lines, commit them with their offsets, and publish them. */
        void step() throws IOException {
            var files = filesIn(source);
            files.removeIf(each -> !each.endsWith(".txt") || sum(each) % of != share);
            var fresh = files.stream().filter(each -> !offsets.containsKey(each)).toList();
            var read = fresh.isEmpty() ? Map.of() : readOffsets(fresh);
            for (int at = 0; at < fresh.size(); at++)
                offsets.put(fresh.get(at), in(read, "offsets", at));
            var rows = new ByteArrayOutputStream();
            var advances = new ArrayList<Object>();
            for (var name : files) {
                var start = offsets.get(name);
                long from = start == null ? 0 : Worker.<Long>in(start, "bytes");
                var part = linesOf(source.resolve(name), from, BATCH_BYTES - rows.size());
                var end = map("bytes", from + part.length);
                rows.write(part);
                if (part.length > 0)
                    advances.add(map("partition", map("file", name), "start", start, "end", end));
            }
            if (rows.size() > 0) commit(rows.toByteArray(), advances);
        }

        void commit(byte[] rows, List<Object> advances) throws IOException {
            var numbers = new Object[] {key.task, token.get(0), token.get(1), batch};
            var name = "%s-%s-%s-%s.txt".formatted(numbers);
            Files.write(staged.resolve(name), rows);
            sync(staged.resolve(name));
            long count = new String(rows, UTF_8).lines().count();
            var commitId = List.<Object>of(key.connector, key.task, token, batch);
            var manifest = map("root", sink.toString(), "staging", name, "rows", count);
            manifest.putAll(map("bytes", rows.length, "files", 1));
            var commit = map("commit_id", commitId, "advances", advances, "rows_in", count);
            commit.put("manifest", manifest);
            var answer = ask("CommitOffsets", map("commits", List.of(commit)));
            if (!"NONE".equals(in(answer, "verdicts", 0, "error")))
                throw new GivenToOthers(in(answer, "verdicts", 0, "message"));
            for (var each : advances) offsets.put(in(each, "partition", "file"), in(each, "end"));
            batch++;
            publish(commitId, name);
        }

        void publish(Object commitId, String name) throws IOException {
            try {
                Files.move(staged.resolve(name), sink.resolve(name));
            } catch (NoSuchFileException done) { // by another owner
            }
            sync(sink);
            ask("CommitOffsets", map("commits", List.of(), "published", List.of(commitId)));
        }
    }

    static int sum(String name) {
        int sum = 0;
        for (byte each : name.getBytes(UTF_8)) sum += each & 255;
        return sum;
    }

    static List<String> filesIn(Path folder) throws IOException {
        try (var files = Files.list(folder)) {
            var names = files.map(each -> each.getFileName().toString());
            return new ArrayList<>(names.sorted().toList());
        }
    }

    static byte[] linesOf(Path path, long from, int most) throws IOException {
        try (var file = new RandomAccessFile(path.toFile(), "r")) {
            var part = new byte[(int) Math.max(0, Math.min(most, file.length() - from))];
            file.seek(from);
            file.readFully(part);
            int end = part.length;
            while (end > 0 && part[end - 1] != '\n') end--;
            return Arrays.copyOf(part, end);
        }
    }

    static void sync(Path path) throws IOException {
        try (var file = FileChannel.open(path)) {
            file.force(true);
        }
    }

    /** What runs: under which token, in which state, and as which task. */
    record Running(List<Object> grant, Task task) {}

    interface Deed {
        void happen() throws IOException;
    }

    final Line beats, asks;
    final String group, memberId = "" + UUID.randomUUID(), incarnation = "" + UUID.randomUUID();
    final Map<Key, Running> running = new HashMap<>();
    Set<Key> owned = new HashSet<>();
    int epoch = JOIN, intervalMs = 3000;
    long sequence = 0, coordinator = -1, sentAt, fenceAt;
    boolean full = true;
    volatile boolean leaves;

    Worker(String host, String port, String group) {
        beats = new Line(host, port);
        asks = new Line(host, port);
        this.group = group;
    }

    static long now() {
        return System.nanoTime() / 1_000_000;
    }

    static void say(Object... words) {
        System.out.println(String.join(" ", Arrays.stream(words).map(String::valueOf).toList()));
    }

    /** Return what the group answers, which is durable then; ask again until it does. */
    Object ask(String kind, Map<String, Object> fields) {
        for (String message = "no answer"; ; pause(200)) {
            int error = 15;
            try {
                var body = pack("m", fields);
                asks.send(ASK, pack("ssissb", group, memberId, -1, kind, body, 0));
                var answer = asks.receive();
                answer.data.getInt();
                error = answer.data.getShort();
                message = answer.text();
                answer.text();
                answer.size();
                if (error == 0) return answer.msgpack();
            } catch (IOException cut) {
                asks.open = null;
            }
            if (FENCED.contains(error) || now() > fenceAt) throw new GivenToOthers(message);
            if (!ASK_AGAIN.contains(error)) throw new IllegalStateException(message);
        }
    }

    static void pause(int ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException ended) {
            throw new IllegalStateException(ended);
        }
    }

    /** Do something for a resource, which is dropped if it is fenced, and FAILED if it fails. */
    void attempt(Key key, Deed deed) {
        try {
            deed.happen();
        } catch (GivenToOthers fenced) {
            say("fenced", key, fenced.getMessage());
            running.remove(key);
        } catch (IOException | RuntimeException error) {
            var trace = new StringWriter();
            error.printStackTrace(new PrintWriter(trace));
            running.put(key, new Running(running.get(key).grant, null));
            attempt(key, () -> report(key, "FAILED", trace.toString()));
        }
    }

    void step() {
        for (var each : List.copyOf(running.entrySet()))
            if (each.getValue().task != null) attempt(each.getKey(), each.getValue().task::step);
    }

    /** Begin what is granted and does not run yet, or ran under another token or state. */
    void align() {
        List<?> granted = in(ask("ReadWork", map("resources", List.copyOf(owned))), "work");
        for (var work : granted) {
            Long task = in(work, "resource", 1);
            var key = new Key(in(work, "resource", 0), task.intValue());
            var grant = List.of(in(work, "token"), in(work, "state"));
            if (running.containsKey(key) && running.get(key).grant.equals(grant)) continue;
            running.put(key, new Running(grant, null));
            attempt(key, () -> begin(key, grant, work));
        }
    }

    void begin(Key key, List<Object> grant, Object work) throws IOException {
        if (grant.get(1).equals("RUNNING") && key.task >= 0) {
            running.put(key, new Running(grant, new Task(key, work)));
        } else if (grant.get(1).equals("RUNNING")) {
            var split = map("connector", key.connector, "token", grant.get(0));
            String count = in(work, "connector_config", "tasks.max");
            var configs = new ArrayList<Object>();
            for (int each = 0; each < Integer.parseInt(count); each++)
                configs.add(map("share", "" + each, "of", count));
            split.put("configs", configs);
            ask("PutTaskConfigs", split);
        }
        report(key, (String) grant.get(1), "");
        say("begins", key);
    }

    void report(Key key, String state, String reason) {
        var status = map("resource", key, "token", running.get(key).grant.get(0), "state", state);
        status.putAll(map("at_ms", System.currentTimeMillis(), "reason", reason));
        ask("ReportStatus", map("updates", List.of(status)));
    }

    /** Send a heartbeat: all of it at first, and after anything that went wrong. */
    void beat() throws IOException {
        sequence++;
        sentAt = now();
        var assignor = pack("zsxsb", 2, "balanced", new byte[7], ABLE, 0); // versions and reason
        var changes = full ? pack("isx", REBALANCE_MS, null, assignor) : pack("isb", -1, null, 0);
        var tags = pack("bbbs", 3, 1, incarnation.length() + 1, incarnation);
        var numbers = pack("bbqbbq", 2, 8, sequence, 4, 8, coordinator);
        var body = pack("ssisxbR", group, memberId, epoch, null, changes, 1, owned);
        beats.send(HEARTBEAT, pack("xxx", body, tags, numbers));
    }

    /** Follow the answer to a heartbeat: end what is revoked, begin what is granted. */
    void follow() throws IOException {
        var answer = beats.receive();
        answer.data.getInt();
        int error = answer.data.getShort();
        var message = answer.text();
        int reached = answer.data.getInt(), interval = answer.data.getInt();
        var assigned = owned;
        if (answer.data.get() > 0) {
            answer.data.get();
            assigned = answer.resources();
            answer.data.getShort();
            answer.text();
            answer.tags();
        }
        var tags = answer.tags();
        if (tags.containsKey(PROCESS)) coordinator = tags.get(PROCESS).data.getLong();
        full = error != 0;
        if (FENCED.contains(error)) lose(message);
        else if (full && !ASK_AGAIN.contains(error)) throw new IllegalStateException(message);
        if (full) return;
        epoch = reached;
        intervalMs = interval;
        fenceAt = sentAt + tags.get(SESSION).data.getInt() - MARGIN_MS;
        if (tags.containsKey(REASON)) say("has nothing:", tags.get(REASON).text());
        var gone = new HashSet<>(owned);
        gone.removeAll(assigned);
        end(gone);
        owned = assigned;
        try {
            align();
        } catch (GivenToOthers fenced) { // the next answer says more
        }
    }

    void end(Set<Key> keys) {
        for (var key : keys) {
            if (!running.containsKey(key)) continue;
            attempt(key, () -> report(key, "UNASSIGNED", "stopped"));
            running.remove(key);
            say("ends", key);
        }
    }

    /** Stop everything at once, since others may have started it, and join again. */
    void lose(String why) {
        say("has lost everything:", why);
        running.clear();
        owned = new HashSet<>();
        epoch = JOIN;
        full = true;
    }

    void work() {
        while (!leaves) {
            try {
                beat();
                boolean isAnswered = false;
                while (!isAnswered && !leaves) {
                    isAnswered = beats.isAnswered(100);
                    step();
                    if (now() > sentAt + intervalMs + 1500) throw new EOFException("no answer");
                }
                if (isAnswered) follow();
            } catch (IOException cut) {
                full = true;
                beats.open = null;
                if (!owned.isEmpty() && now() >= fenceAt) lose(cut.getMessage());
                pause(200);
            }
        }
    }

    void leave() throws IOException {
        beats.open = null;
        end(owned);
        owned = new HashSet<>();
        epoch = LEAVE;
        full = false;
        beat();
        beats.receive();
    }

    public static void main(String... place) throws Exception {
        var worker = new Worker(place[0], place[1], place[2]);
        var main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            worker.leaves = true;
            try {
                main.join();
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(0);
        }));
        worker.work();
        worker.leave();
    }
}
