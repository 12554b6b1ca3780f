"""A plugin of Connect that does what no plugin should, compiled by the tests."""

import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from fairlead_tests.java_peer import QUICK
from fairlead_tests.plugins.installed import fetched, installation, java_here

NAME = "bad.BadSinkConnector"
ECJ = "org.eclipse.jdt:ecj:3.43.0"
SERVICE = "org.apache.kafka.connect.sink.SinkConnector"
SOURCE = """
package bad;

import java.util.*;
import org.apache.kafka.common.config.*;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;

public class BadSinkConnector extends SinkConnector {
    private static final List<Object> kept = new ArrayList<>();

    public Config validate(Map<String, String> config) {
        switch (config.getOrDefault("does", "")) {
            case "blocks":
                block();
                break;
            case "throws":
                throw new IllegalStateException("no such luck");
            case "breaks":
                throw new NoClassDefFoundError("com/example/Missing");
            case "is too new":
                throw new UnsupportedClassVersionError(
                    "com/example/New has been compiled by a more recent version of the Java"
                    + " Runtime (class file version 69.0), this version of the Java Runtime only"
                    + " recognizes class file versions up to 61.0");
            case "exits":
                System.exit(7);
                break;
            case "halts":
                Runtime.getRuntime().halt(8);
                break;
            case "fills":
                while (true) kept.add(new long[1 << 20]);
            case "prints":
                System.out.println("{\\"id\\": 1, \\"answer\\": \\"not an answer\\"}");
                break;
            case "is silent":
                ConfigValue value = new ConfigValue(
                    "plain", null, Arrays.asList("a", null), new ArrayList<>());
                value.addErrorMessage(null);
                return new Config(List.of(value));
            default:
        }
        return super.validate(config);
    }

    private static void block() {
        try {
            new java.util.concurrent.CountDownLatch(1).await();
        } catch (InterruptedException end) {
            throw new IllegalStateException(end);
        }
    }

    public ConfigDef config() {
        return new ConfigDef()
            .define("KEY", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, "A key.")
            .define("plain", ConfigDef.Type.STRING, null, ConfigDef.Importance.LOW, null);
    }

    public String version() { return "1.0"; }
    public void start(Map<String, String> config) { }
    public Class<? extends Task> taskClass() { return null; }
    public List<Map<String, String>> taskConfigs(int most) { return List.of(); }
    public void stop() { }
}
"""


def write_bad_plugin(folder: Path, key: str = "does") -> Path:
    """Write a folder with one jar of the plugin, whose config has one key."""
    return write_plugin(folder, {NAME: SOURCE.replace("KEY", key)}, {SERVICE: [NAME]})


def write_plugin(
    folder: Path, sources: Mapping[str, str], services: Mapping[str, Sequence[str]]
) -> Path:
    """Write a folder with `bad.jar`, compiled of the sources of some classes, with services."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "bad.jar", "w") as jar:
        for path, compiled in _compiled(tuple(sources.items())).items():
            jar.writestr(path, compiled)
        for service, names in services.items():
            jar.writestr(f"META-INF/services/{service}", "\n".join(names))
    return folder


@cache
def _compiled(sources: tuple[tuple[str, str], ...]) -> Mapping[str, bytes]:
    """Return the classes by their paths; each process of a run compiles them once."""
    (compiler,) = fetched(ECJ)
    with TemporaryDirectory() as work:
        written = [Path(work, f"{name.replace('.', '/')}.java") for name, _ in sources]
        for path, (_, source) in zip(written, sources, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        class_path = ":".join(map(str, installation().class_path))
        classes = Path(work, "classes")
        command = [str(java_here().command), *QUICK, "-jar", str(compiler), "-17", "-nowarn"]
        command += ["-classpath", class_path, "-d", str(classes), *map(str, written)]
        subprocess.run(command, check=True, timeout=300)
        found = sorted(classes.rglob("*.class"))
        return {str(each.relative_to(classes)): each.read_bytes() for each in found}
