package org.apache.kafka.connect.transforms;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import org.apache.kafka.connect.data.Date;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/**
 * Applies Connect's own transforms: a class, its keys and records come in as a line of JSON, what
 * became of each record goes out as another.
 *
 * <p>Scalars travel as text. A type is a name of Spark's, or a name with what is in it.
 */
public final class TransformPeer {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        Scanner lines = new Scanner(System.in, "UTF-8");
        while (lines.hasNextLine()) {
            ArrayNode answer = play(JSON.readTree(lines.nextLine()));
            System.out.write((JSON.writeValueAsString(answer) + "\n").getBytes("UTF-8"));
            System.out.flush();
        }
    }

    @SuppressWarnings("unchecked")
    private static ArrayNode play(JsonNode asked) throws Exception {
        ArrayNode answers = JSON.createArrayNode();
        Object made;
        try {
            made = Class.forName(asked.get("class").asText()).getDeclaredConstructor().newInstance();
            Map<String, String> config = JSON.convertValue(asked.get("config"), HashMap.class);
            if (made instanceof Predicate) {
                ((Predicate<SinkRecord>) made).configure(config);
            } else {
                ((Transformation<SinkRecord>) made).configure(config);
            }
        } catch (Exception error) {
            asked.get("records").forEach(each -> answers.add(failure(error)));
            return answers;
        }
        Schema keySchema = schema(asked.get("keyType"), "");
        Schema valueSchema = schema(asked.get("valueType"), asked.get("valueName").asText());
        for (JsonNode each : asked.get("records")) {
            try {
                SinkRecord record = record(each, keySchema, valueSchema);
                if (made instanceof Predicate) {
                    boolean holds = ((Predicate<SinkRecord>) made).test(record);
                    answers.add(JSON.createObjectNode().put("holds", holds));
                } else {
                    answers.add(told(((Transformation<SinkRecord>) made).apply(record)));
                }
            } catch (Exception error) {
                answers.add(failure(error));
            }
        }
        return answers;
    }

    private static ObjectNode failure(Exception error) {
        return JSON.createObjectNode().put("error", error.toString());
    }

    private static SinkRecord record(JsonNode given, Schema keySchema, Schema valueSchema) {
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode each : given.get("headers")) {
            headers.addString(each.get(0).asText(), each.get(1).isNull() ? null : each.get(1).asText());
        }
        JsonNode time = given.get("timestamp");
        return new SinkRecord(
                given.get("topic").isNull() ? null : given.get("topic").asText(),
                given.get("partition").asInt(),
                keySchema,
                read(keySchema, given.get("key")),
                valueSchema,
                read(valueSchema, given.get("value")),
                given.get("offset").asLong(),
                time.isNull() ? null : time.asLong(),
                org.apache.kafka.common.record.TimestampType.CREATE_TIME,
                headers);
    }

    private static ObjectNode told(SinkRecord record) {
        if (record == null) {
            return null;
        }
        ObjectNode told = JSON.createObjectNode().put("topic", record.topic());
        told.set("key", write(record.keySchema(), record.key()));
        told.set("value", write(record.valueSchema(), record.value()));
        ArrayNode headers = told.putArray("headers");
        SimpleHeaderConverter converter = new SimpleHeaderConverter();
        for (Header each : record.headers()) {
            byte[] text = converter.fromConnectHeader("", each.key(), each.schema(), each.value());
            headers.addArray().add(each.key()).add(text == null ? null : new String(text, java.nio.charset.StandardCharsets.UTF_8));
        }
        return told;
    }

    private static Schema schema(JsonNode type) {
        return schema(type, "");
    }

    private static Schema schema(JsonNode type, String name) {
        if (type == null || type.isNull()) {
            return null;
        }
        SchemaBuilder made;
        if (type.isTextual()) {
            made = switch (type.asText()) {
                case "tinyint" -> SchemaBuilder.int8();
                case "smallint" -> SchemaBuilder.int16();
                case "int" -> SchemaBuilder.int32();
                case "bigint" -> SchemaBuilder.int64();
                case "float" -> SchemaBuilder.float32();
                case "double" -> SchemaBuilder.float64();
                case "boolean" -> SchemaBuilder.bool();
                case "binary" -> SchemaBuilder.bytes();
                case "date" -> Date.builder();
                case "timestamp" -> Timestamp.builder();
                default -> SchemaBuilder.string();
            };
        } else if (type.has("decimal")) {
            made = Decimal.builder(type.get("decimal").get(1).asInt());
        } else if (type.has("array")) {
            made = SchemaBuilder.array(schema(type.get("array")));
        } else if (type.has("map")) {
            made = SchemaBuilder.map(schema(type.get("map").get(0)), schema(type.get("map").get(1)));
        } else {
            made = SchemaBuilder.struct();
            for (JsonNode each : type.get("struct")) {
                made.field(each.get(0).asText(), schema(each.get(1)));
            }
        }
        return (name.isEmpty() ? made : made.name(name)).optional().build();
    }

    private static Object read(Schema schema, JsonNode value) {
        if (schema == null || value == null || value.isNull()) {
            return null;
        }
        String text = value.asText();
        if (Decimal.LOGICAL_NAME.equals(schema.name())) {
            int scale = Integer.parseInt(schema.parameters().get(Decimal.SCALE_FIELD));
            return new BigDecimal(text).setScale(scale);
        } else if (Date.LOGICAL_NAME.equals(schema.name())) {
            return Date.toLogical(schema, Integer.parseInt(text));
        } else if (Timestamp.LOGICAL_NAME.equals(schema.name())) {
            return new java.util.Date(Long.parseLong(text));
        }
        switch (schema.type()) {
            case INT8: return Byte.valueOf(text);
            case INT16: return Short.valueOf(text);
            case INT32: return Integer.valueOf(text);
            case INT64: return Long.valueOf(text);
            case FLOAT32: return Float.valueOf(text);
            case FLOAT64: return Double.valueOf(text);
            case BOOLEAN: return Boolean.valueOf(text);
            case BYTES: return Base64.getDecoder().decode(text);
            case STRING: return text;
            case ARRAY:
                List<Object> items = new ArrayList<>();
                value.forEach(each -> items.add(read(schema.valueSchema(), each)));
                return items;
            case MAP:
                Map<Object, Object> entries = new LinkedHashMap<>();
                value.forEach(each -> entries.put(
                        read(schema.keySchema(), each.get(0)), read(schema.valueSchema(), each.get(1))));
                return entries;
            default:
                Struct struct = new Struct(schema);
                Iterator<JsonNode> values = value.iterator();
                for (Field field : schema.fields()) {
                    struct.put(field, read(field.schema(), values.next()));
                }
                return struct;
        }
    }

    private static JsonNode write(Schema schema, Object value) {
        if (schema == null || value == null) {
            return null;
        }
        ObjectNode told = JSON.createObjectNode();
        if (Decimal.LOGICAL_NAME.equals(schema.name())) {
            return told.put("decimal", ((BigDecimal) value).toPlainString());
        } else if (Date.LOGICAL_NAME.equals(schema.name())) {
            return told.put("date", String.valueOf(Math.floorDiv(((java.util.Date) value).getTime(), 86400000L)));
        } else if (Time.LOGICAL_NAME.equals(schema.name())) {
            return told.put("int", String.valueOf(((java.util.Date) value).getTime()));
        } else if (Timestamp.LOGICAL_NAME.equals(schema.name())) {
            return told.put("timestamp", String.valueOf(((java.util.Date) value).getTime()));
        }
        switch (schema.type()) {
            case INT8: return told.put("tinyint", value.toString());
            case INT16: return told.put("smallint", value.toString());
            case INT32: return told.put("int", value.toString());
            case INT64: return told.put("bigint", value.toString());
            case FLOAT32: return told.put("float", value.toString());
            case FLOAT64: return told.put("double", value.toString());
            case BOOLEAN: return told.put("boolean", value.toString());
            case STRING: return told.put("string", (String) value);
            case BYTES:
                byte[] bytes = value instanceof ByteBuffer ? ((ByteBuffer) value).array() : (byte[]) value;
                return told.put("binary", Base64.getEncoder().encodeToString(bytes));
            case ARRAY:
                ArrayNode items = told.putArray("array");
                ((List<?>) value).forEach(each -> items.add(write(schema.valueSchema(), each)));
                return told;
            case MAP:
                ArrayNode entries = told.putArray("map");
                ((Map<?, ?>) value).forEach((key, each) -> entries.addArray()
                        .add(write(schema.keySchema(), key)).add(write(schema.valueSchema(), each)));
                return told;
            default:
                ((Struct) value).validate();
                ArrayNode fields = told.putArray("struct");
                for (Field field : schema.fields()) {
                    fields.addArray().add(field.name())
                            .add(write(field.schema(), ((Struct) value).getWithoutDefault(field.name())));
                }
                return told;
        }
    }
}
