package fairlead.plugins;

import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Arrays;

/**
 * Starts the host in a class loader of its own. Plugins see what is on the class path, which has Connect's
 * classes and this one; they do not see the host and its libraries.
 */
public final class Boot {
    private Boot() {
    }

    /** Takes the jars of the host, as in a class path, and the path of its socket. */
    public static void main(String[] arguments) throws Exception {
        URL[] jars = Arrays.stream(arguments[0].split(File.pathSeparator))
            .map(Boot::locate)
            .toArray(URL[]::new);
        ClassLoader loader = new URLClassLoader("host", jars, Boot.class.getClassLoader());
        Class<?> host = Class.forName("fairlead.plugins.PluginHost", true, loader);
        host.getMethod("main", String[].class)
            .invoke(null, (Object) Arrays.copyOfRange(arguments, 1, arguments.length));
    }

    private static URL locate(String jar) {
        try {
            return new File(jar).toURI().toURL();
        } catch (java.net.MalformedURLException error) {
            throw new IllegalArgumentException(jar, error);
        }
    }
}
