package fairlead.plugins;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import java.nio.charset.StandardCharsets;

/** Reads what the other process sends: lines, and the bytes that some announce. */
final class Incoming {
    private static final int SIZE = 1 << 16;

    private final ReadableByteChannel channel;
    private final ByteBuffer read = ByteBuffer.allocate(SIZE).flip();

    Incoming(ReadableByteChannel channel) {
        this.channel = channel;
    }

    /** Returns the next line without its end; null if there is none any more. */
    String line() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        while (read.hasRemaining() || fill()) {
            byte each = read.get();
            if (each == '\n') {
                return line.toString(StandardCharsets.UTF_8);
            }
            line.write(each);
        }
        return null;
    }

    /** Returns the next bytes; throws an EOFException if there are fewer. */
    byte[] bytes(int count) throws IOException {
        byte[] bytes = new byte[count];
        int have = Math.min(count, read.remaining());
        read.get(bytes, 0, have);
        ByteBuffer rest = ByteBuffer.wrap(bytes, have, count - have);
        while (rest.hasRemaining()) {
            if (channel.read(rest) < 0) {
                throw new EOFException();
            }
        }
        return bytes;
    }

    private boolean fill() throws IOException {
        read.clear();
        boolean there = channel.read(read) >= 0;
        read.flip();
        return there;
    }
}
