package fairlead.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.json.JsonConverter;

/** The schemas of rows, from Connect's notation in JSON; equal ones are one object, so plugins know them again. */
final class RowSchemas {
    private static final int MOST = 1_000;

    private final JsonConverter converter = new JsonConverter();
    private final Map<JsonNode, Schema> known = new HashMap<>();

    RowSchemas() {
        converter.configure(Map.of("schemas.enable", true), false);
    }

    /** Returns a schema; null for none. */
    synchronized Schema of(JsonNode schema) {
        if (schema == null || schema.isNull()) {
            return null;
        }
        if (known.size() >= MOST) {
            known.clear();
        }
        return known.computeIfAbsent(schema, converter::asConnectSchema);
    }
}
