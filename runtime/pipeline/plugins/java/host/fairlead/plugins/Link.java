package fairlead.plugins;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.errors.NotFoundException;
import org.apache.kafka.connect.runtime.rest.errors.ConnectRestException;

/**
 * The conversation with the process that has started this one: lines of JSON on a socket.
 *
 * <p>A question is {@code {"id": 7, "ask": "keys", "with": {…}}}, its answer {@code {"id": 7, "answer": …}} or
 * {@code {"id": 7, "error": {"kind": …, "message": …, "status": …}}}. Each question has a thread of its own, so
 * that none waits for another. The question {@code where} is answered here: it names the line of code at which
 * another question is.
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
        BufferedReader lines = new BufferedReader(Channels.newReader(channel, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode question = JSON.readTree(line);
            threads.execute(() -> answer(question));
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

    private synchronized void send(Map<String, Object> reply) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap((encode(reply) + "\n").getBytes(StandardCharsets.UTF_8));
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
