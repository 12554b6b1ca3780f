package fairlead.tests;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;

/**
 * Kafka's own client, which logs in with each line of properties, with tabs between them. Its
 * answer is a line as well: "let in", or the name of the error.
 */
public final class LoginsPeer {
    public static void main(String[] none) {
        List<String> lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))
                .lines().toList();
        lines.parallelStream().map(LoginsPeer::heard).toList().forEach(System.out::println);
    }

    private static String heard(String line) {
        Properties properties = new Properties();
        for (String each : line.split("\t")) {
            int end = each.indexOf('=');
            properties.setProperty(each.substring(0, end), each.substring(end + 1));
        }
        try (Admin admin = Admin.create(properties)) {
            admin.listTopics().names().get();
            return "let in";
        } catch (ExecutionException thrown) {
            return thrown.getCause().getClass().getSimpleName();
        } catch (InterruptedException thrown) {
            return "nothing";
        }
    }
}
