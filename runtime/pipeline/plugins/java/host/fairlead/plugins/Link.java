package fairlead.plugins;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.errors.NotFoundException;
import org.apache.kafka.connect.runtime.rest.errors.ConnectRestException;

/**
 * The conversation with the process that has started this one: lines of JSON on a socket.
 *
 * <p>A question is {@code {"id": 7, "ask": "keys", "with": {…}}}, its answer {@code {"id": 7, "answer": …}} or
 * {@code {"id": 7, "error": {"kind": …, "message": …, "status": …}}}. Each side has its own numbers. News has no
 * number, and no answer: {@code {"tell": "status", "with": {…}}}. Where a line has {@code "bytes": 9}, so many follow
 * it; those of a question become its {@code data}. Each question has a thread of its own, so that none waits for
 * another. The question {@code where} is answered here: it names the line of code at which another question is.
 */
final class Link {
    /** Answers a question; the answer is anything that Jackson can write. */
    interface Answers {
        Object to(String question, JsonNode with) throws Throwable;
    }

    private static final int BAD_REQUEST = 400;
    private static final int NOT_FOUND = 404;
    static final ObjectMapper JSON = new ObjectMapper();

    private final SocketChannel channel;
    private final Answers answers;
    /** The threads that work on answers, by the number of the question. */
    private final Map<Long, Thread> busy = new ConcurrentHashMap<>();
    private final AtomicLong numbers = new AtomicLong();
    /** The questions of this side that have no answer yet, by their number. */
    private final Map<Long, CompletableFuture<JsonNode>> open = new ConcurrentHashMap<>();

    Link(SocketChannel channel, Answers answers) {
        this.channel = channel;
        this.answers = answers;
    }

    /** Answers questions until the other process closes its end. */
    void serve() throws IOException {
        Executor threads = Executors.newCachedThreadPool(work -> {
            Thread thread = new Thread(work, "question");
            thread.setDaemon(true);
            return thread;
        });
        Incoming incoming = new Incoming(channel);
        for (String line = incoming.line(); line != null; line = incoming.line()) {
            JsonNode said = JSON.readTree(line);
            if (said.has("bytes")) {
                ((ObjectNode) said.get("with")).put("data", incoming.bytes(said.get("bytes").asInt()));
            }
            if (said.has("ask")) {
                threads.execute(() -> answer(said));
                continue;
            }
            CompletableFuture<JsonNode> answer = open.remove(said.get("id").asLong());
            if (answer != null) {
                answer.complete(said.path("answer"));
            }
        }
    }

    /** Asks the other process, and waits for its answer for up to a number of milliseconds. */
    JsonNode ask(String question, Map<String, ?> with, long milliseconds) throws IOException, TimeoutException {
        long id = numbers.incrementAndGet();
        CompletableFuture<JsonNode> answer = new CompletableFuture<>();
        open.put(id, answer);
        try {
            send(Map.of("id", id, "ask", question, "with", with));
            return answer.get(milliseconds, TimeUnit.MILLISECONDS);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new IOException("it was interrupted", stopped);
        } catch (java.util.concurrent.ExecutionException impossible) {
            throw new IllegalStateException(impossible);
        } finally {
            open.remove(id);
        }
    }

    /** Tells the other process what has happened; there is no answer. */
    void tell(String news, Map<String, ?> with) {
        tell(news, with, List.of());
    }

    /** Tells the other process what has happened, with bytes that follow the line. */
    void tell(String news, Map<String, ?> with, List<ByteBuffer> parts) {
        try {
            long size = parts.stream().mapToLong(ByteBuffer::remaining).sum();
            send(size == 0 ? Map.of("tell", news, "with", with) : Map.of("tell", news, "with", with, "bytes", size), parts);
        } catch (IOException gone) {
            Runtime.getRuntime().halt(0); // nobody is there any more
        }
    }

    private void answer(JsonNode question) {
        long id = question.get("id").asLong();
        Map<String, Object> reply = new HashMap<>();
        busy.put(id, Thread.currentThread());
        try {
            reply.put("answer", find(question.get("ask").asText(), question.path("with")));
        } catch (Throwable failure) { // whatever a plugin throws, a LinkageError too, is an answer
            reply.put("error", describe(failure));
        } finally {
            busy.remove(id);
        }
        reply.put("id", id);
        try {
            send(reply);
        } catch (IOException gone) {
            Runtime.getRuntime().halt(0); // nobody is there any more
        }
    }

    private Object find(String question, JsonNode with) throws Throwable {
        if (!question.equals("where")) {
            return answers.to(question, with);
        }
        Thread thread = busy.get(with.get("id").asLong());
        return thread == null ? "" : locate(thread.getStackTrace());
    }

    /** Returns the line at which code is, or from which it has called Java's own classes. */
    static String locate(StackTraceElement[] frames) {
        return Arrays.stream(frames)
            .filter(frame -> !Objects.equals(frame.getModuleName(), "java.base"))
            .findFirst()
            .map(StackTraceElement::toString)
            .orElse("");
    }

    private static Map<String, Object> describe(Throwable failure) {
        Map<String, Object> told = new HashMap<>();
        told.put("kind", failure.getClass().getName());
        told.put("message", failure.getMessage());
        if (failure instanceof ConnectRestException refusal) {
            told.put("status", refusal.statusCode());
        } else if (failure instanceof NotFoundException) {
            told.put("status", NOT_FOUND);
        } else if (failure instanceof ConfigException) {
            told.put("status", BAD_REQUEST);
        } else {
            failure.printStackTrace(); // a refusal is an answer; this is a fault, and belongs to the log
        }
        return told;
    }

    private void send(Map<String, Object> reply) throws IOException {
        send(reply, List.of());
    }

    private synchronized void send(Map<String, Object> reply, List<ByteBuffer> parts) throws IOException {
        write(ByteBuffer.wrap((encode(reply) + "\n").getBytes(StandardCharsets.UTF_8)));
        for (ByteBuffer each : parts) {
            write(each);
        }
    }

    private void write(ByteBuffer bytes) throws IOException {
        while (bytes.hasRemaining()) {
            channel.write(bytes);
        }
    }

    private static String encode(Map<String, Object> reply) throws JsonProcessingException {
        try {
            return JSON.writeValueAsString(reply);
        } catch (JsonProcessingException | RuntimeException failure) {
            return JSON.writeValueAsString(Map.of("id", reply.get("id"), "error", describe(failure)));
        }
    }
}
