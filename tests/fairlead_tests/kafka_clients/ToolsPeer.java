package fairlead.tests;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's tools in one process: a line has a class and its words, with tabs between them. What the
 * tool says comes back, and then a line with a NUL alone.
 */
public final class ToolsPeer {
    private static final class Ended extends RuntimeException {
    }

    public static void main(String[] none) throws Exception {
        Exit.setExitProcedure((code, message) -> {
            if (code != 0) {
                throw new Ended();
            }
        });
        PrintStream out = System.out;
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
            System.setErr(System.out);
            try {
                Class.forName(words[0]).getMethod("main", String[].class)
                    .invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
            } catch (java.lang.reflect.InvocationTargetException thrown) {
                if (!(thrown.getCause() instanceof Ended)) {
                    thrown.getCause().printStackTrace();
                }
            }
            out.print(said.toString(StandardCharsets.UTF_8));
            out.println();
            out.println("\0");
            out.flush();
        }
    }
}
