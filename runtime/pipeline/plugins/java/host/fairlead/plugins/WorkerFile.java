package fairlead.plugins;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;

/**
 * The properties of the worker as a file: there are plugins (Iceberg's sink) that look for the arguments of
 * Connect's own process, and read the file that is named there. It has secrets, so it is removed at once, and is
 * read by the descriptor that stays open.
 */
final class WorkerFile {
    private static final Path DESCRIPTORS = Path.of("/proc/self/fd");
    private static final String COMMAND = "sun.java.command";
    private static InputStream kept;

    private WorkerFile() {
    }

    /** Makes this JVM look like a worker with these properties, on systems that name descriptors. */
    static synchronized void publish(Map<String, String> properties) throws IOException {
        if (kept != null || !Files.isDirectory(DESCRIPTORS)) {
            return;
        }
        Path file = Files.createTempFile("fairlead-", ".properties"); // for its owner alone
        try {
            Properties all = new Properties();
            all.putAll(properties);
            try (OutputStream out = Files.newOutputStream(file)) {
                all.store(out, null);
            }
            kept = new FileInputStream(file.toFile());
            System.setProperty(COMMAND, "org.apache.kafka.connect.cli.ConnectDistributed " + descriptor(file));
        } finally {
            Files.delete(file);
        }
    }

    private static Path descriptor(Path file) throws IOException {
        try (DirectoryStream<Path> open = Files.newDirectoryStream(DESCRIPTORS)) {
            for (Path each : open) {
                if (Files.exists(each) && Files.isSameFile(each, file)) {
                    return each;
                }
            }
        }
        throw new IOException(file + " is not open");
    }
}
