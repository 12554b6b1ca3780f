package fairlead.plugins;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.BitVector;
import org.apache.arrow.vector.DateDayVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.SmallIntVector;
import org.apache.arrow.vector.TimeStampMicroTZVector;
import org.apache.arrow.vector.TinyIntVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.MapVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.types.DateUnit;
import org.apache.arrow.vector.types.FloatingPointPrecision;
import org.apache.arrow.vector.types.TimeUnit;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.errors.DataException;

/**
 * Records of Connect as tables of Arrow: one for each topic and schema. A table's metadata have its topic, and where
 * there are several, each has the places of its rows in the batch.
 *
 * <p>A struct's fields are columns; any other value is the column {@code _value}, and one without a schema its text.
 * Types are those of records with Connect's JSON schemas (formats/connect.py has the same table); a field keeps the
 * name, the version and the parameters of its schema as metadata.
 */
final class BatchRows {
    /** A record as a producer was given it, with its key and value before any conversion. */
    record Record(ProducerRecord<byte[], byte[]> sent, SchemaAndValue key, SchemaAndValue value) {
    }

    private record Kind(String topic, Schema key, Schema value) {
        boolean isOf(Record each, boolean withKey) {
            return (!withKey || each.key().schema() == key)
                && each.value().schema() == value
                && each.sent().topic().equals(topic);
        }
    }

    private interface Cell {
        void put(FieldVector column, int row, Record of);
    }

    private record Column(Field field, Cell cell) {
    }

    private static final String TOPIC_OF_TABLE = "fairlead.topic";
    /** The place of a row in the batch. */
    private static final Field AT = Field.nullable("_fairlead_at", new ArrowType.Int(64, true));
    private static final String VALUE = "_value";
    private static final String KEY = "_key";
    private static final int DIGITS = 38;
    private static final int MICROS = 1_000;
    private static final long DAY_MS = 86_400_000;
    private static final Set<String> DAYS =
        Set.of(org.apache.kafka.connect.data.Date.LOGICAL_NAME, "io.debezium.time.Date");
    private static final Set<String> MILLIS = Set.of(Timestamp.LOGICAL_NAME, "io.debezium.time.Timestamp");
    private static final String MICRO_TIMES = "io.debezium.time.MicroTimestamp";
    private static final ArrowType TIME = new ArrowType.Timestamp(TimeUnit.MICROSECOND, "UTC");
    private static final BufferAllocator MEMORY = new RootAllocator();

    private BatchRows() {
    }

    /**
     * Returns a stream of Arrow for each table, with some of the columns {@code _key}, {@code _topic},
     * {@code _partition}, {@code _timestamp} and {@code _headers} beside those of values; throws a DataException for
     * what no column can hold.
     */
    static List<ByteBuffer> encode(List<Record> records, Set<String> beside) {
        boolean withKey = beside.contains(KEY);
        Map<Kind, List<Integer>> tables = new LinkedHashMap<>();
        Kind last = null;
        List<Integer> places = null;
        for (int at = 0; at < records.size(); at++) {
            Record each = records.get(at);
            if (last == null || !last.isOf(each, withKey)) { // to look a kind up costs a walk through its schemas
                Schema key = withKey ? each.key().schema() : null;
                last = new Kind(each.sent().topic(), key, each.value().schema());
                places = tables.computeIfAbsent(last, kind -> new ArrayList<>());
            }
            places.add(at);
        }
        List<ByteBuffer> streams = new ArrayList<>();
        boolean withPlaces = tables.size() > 1;
        tables.forEach((kind, rows) -> streams.add(encode(kind, columns(kind, beside), records, rows, withPlaces)));
        return streams;
    }

    private static ByteBuffer encode(
        Kind kind, List<Column> columns, List<Record> records, List<Integer> places, boolean withPlaces) {
        List<Field> fields = new ArrayList<>();
        columns.forEach(each -> fields.add(each.field()));
        if (withPlaces) {
            fields.add(AT);
        }
        try (VectorSchemaRoot table = table(fields, Map.of(TOPIC_OF_TABLE, kind.topic()), places.size())) {
            for (int column = 0; column < columns.size(); column++) {
                FieldVector vector = table.getVector(column);
                Cell cell = columns.get(column).cell();
                for (int row = 0; row < places.size(); row++) {
                    cell.put(vector, row, records.get(places.get(row)));
                }
            }
            if (withPlaces) {
                for (int row = 0; row < places.size(); row++) {
                    put(table.getVector(columns.size()), row, (long) places.get(row), Schema.INT64_SCHEMA);
                }
            }
            return stream(table, places.size());
        }
    }

    private static List<Column> columns(Kind kind, Set<String> beside) {
        List<Column> columns = new ArrayList<>();
        if (kind.value() != null && kind.value().type() == Schema.Type.STRUCT) {
            for (org.apache.kafka.connect.data.Field part : kind.value().fields()) {
                columns.add(new Column(field(part.name(), part.schema()), (column, row, of) -> {
                    Struct value = (Struct) of.value().value();
                    put(column, row, value == null ? null : value.get(part), part.schema());
                }));
            }
        } else {
            columns.add(new Column(
                field(VALUE, kind.value()), (column, row, of) -> put(column, row, of.value().value(), kind.value())));
        }
        List<Column> others = List.of(
            new Column(field(KEY, kind.key()), (column, row, of) -> put(column, row, of.key().value(), kind.key())),
            new Column(
                Field.nullable("_topic", new ArrowType.Utf8()),
                (column, row, of) -> put(column, row, kind.topic(), Schema.STRING_SCHEMA)),
            new Column(
                Field.nullable("_partition", new ArrowType.Int(32, true)),
                (column, row, of) -> put(column, row, of.sent().partition(), Schema.INT32_SCHEMA)),
            new Column(Field.nullable("_timestamp", TIME), (column, row, of) -> {
                Long ms = of.sent().timestamp();
                put(column, row, ms == null ? null : new Date(ms), Timestamp.SCHEMA);
            }),
            new Column(HEADERS, (column, row, of) -> putHeaders((ListVector) column, row, of.sent().headers())));
        others.stream().filter(each -> beside.contains(each.field().getName())).forEach(columns::add);
        return columns;
    }

    /** Returns a table that has room for so many rows. */
    static VectorSchemaRoot table(List<Field> fields, Map<String, String> metadata, int rows) {
        VectorSchemaRoot table =
            VectorSchemaRoot.create(new org.apache.arrow.vector.types.pojo.Schema(fields, metadata), MEMORY);
        table.getFieldVectors().forEach(each -> {
            each.setInitialCapacity(rows);
            each.allocateNew();
        });
        return table;
    }

    /** Returns a table whose rows are complete as a stream of Arrow. */
    static ByteBuffer stream(VectorSchemaRoot table, int rows) {
        table.setRowCount(rows);
        Bytes bytes = new Bytes();
        try (ArrowStreamWriter writer = new ArrowStreamWriter(table, null, Channels.newChannel(bytes))) {
            writer.start();
            writer.writeBatch();
            writer.end();
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible);
        }
        return bytes.whole();
    }

    static final Field HEADERS = new Field(
        "_headers",
        FieldType.nullable(new ArrowType.List()),
        List.of(new Field(
            "element",
            FieldType.nullable(new ArrowType.Struct()),
            List.of(
                Field.nullable("key", new ArrowType.Utf8()), Field.nullable("value", new ArrowType.Binary())))));

    static void putHeaders(ListVector column, int row, Iterable<Header> headers) {
        StructVector pairs = (StructVector) column.getDataVector();
        int first = column.startNewValue(row);
        int at = first;
        for (Header each : headers) {
            pairs.setIndexDefined(at);
            put(pairs.getChildrenFromFields().get(0), at, each.key(), Schema.STRING_SCHEMA);
            put(pairs.getChildrenFromFields().get(1), at, each.value(), Schema.BYTES_SCHEMA);
            at++;
        }
        column.endValue(row, at - first);
    }

    /** Returns the column of a schema; one of values without a schema has texts. */
    private static Field field(String name, Schema schema) {
        if (schema == null) {
            return Field.nullable(name, new ArrowType.Utf8());
        }
        Map<String, String> metadata = new HashMap<>();
        if (schema.name() != null) {
            metadata.put("connect.name", schema.name());
        }
        if (schema.version() != null) {
            metadata.put("connect.version", schema.version().toString());
        }
        if (schema.parameters() != null) {
            schema.parameters().forEach((key, value) -> metadata.put("connect.parameter." + key, value));
        }
        return new Field(name, new FieldType(true, type(name, schema), null, metadata), children(name, schema));
    }

    private static ArrowType type(String name, Schema schema) {
        String logical = schema.name() == null ? "" : schema.name();
        if (logical.equals(Decimal.LOGICAL_NAME)) {
            return new ArrowType.Decimal(DIGITS, Math.max(0, scale(name, schema)), 128);
        }
        if (DAYS.contains(logical)) {
            return new ArrowType.Date(DateUnit.DAY);
        }
        if (MILLIS.contains(logical) || logical.equals(MICRO_TIMES)) {
            return TIME;
        }
        return switch (schema.type()) {
            case INT8 -> new ArrowType.Int(8, true);
            case INT16 -> new ArrowType.Int(16, true);
            case INT32 -> new ArrowType.Int(32, true);
            case INT64 -> new ArrowType.Int(64, true);
            case FLOAT32 -> new ArrowType.FloatingPoint(FloatingPointPrecision.SINGLE);
            case FLOAT64 -> new ArrowType.FloatingPoint(FloatingPointPrecision.DOUBLE);
            case BOOLEAN -> new ArrowType.Bool();
            case STRING -> new ArrowType.Utf8();
            case BYTES -> new ArrowType.Binary();
            case STRUCT -> new ArrowType.Struct();
            case ARRAY -> new ArrowType.List();
            case MAP -> new ArrowType.Map(false);
        };
    }

    private static int scale(String name, Schema schema) {
        int scale = Integer.parseInt(schema.parameters().get(Decimal.SCALE_FIELD));
        if (scale > DIGITS) {
            throw new DataException("field " + name + ": a Decimal has at most " + DIGITS + " digits, not " + scale);
        }
        return scale;
    }

    private static List<Field> children(String name, Schema schema) {
        switch (schema.type()) {
            case STRUCT:
                return schema.fields().stream().map(each -> field(each.name(), each.schema())).toList();
            case ARRAY:
                return List.of(field("element", schema.valueSchema()));
            case MAP:
                if (schema.keySchema().type() != Schema.Type.STRING) {
                    throw new DataException("field " + name + " is a map whose keys are no texts");
                }
                Field key = new Field("key", FieldType.notNullable(new ArrowType.Utf8()), null);
                List<Field> pair = List.of(key, field("value", schema.valueSchema()));
                return List.of(new Field("entries", FieldType.notNullable(new ArrowType.Struct()), pair));
            default:
                return List.of();
        }
    }

    static void put(FieldVector column, int row, Object value, Schema schema) {
        if (value == null) {
            column.setNull(row);
        } else if (column instanceof VarCharVector texts) {
            texts.setSafe(row, (schema == null ? text(value) : value.toString()).getBytes(StandardCharsets.UTF_8));
        } else if (column instanceof BigIntVector numbers) {
            numbers.setSafe(row, (Long) value);
        } else if (column instanceof IntVector numbers) {
            numbers.setSafe(row, value instanceof Date time ? (int) time.getTime() : (Integer) value); // Connect's Time
        } else if (column instanceof Float8Vector numbers) {
            numbers.setSafe(row, (Double) value);
        } else if (column instanceof BitVector flags) {
            flags.setSafe(row, (Boolean) value ? 1 : 0);
        } else if (column instanceof TimeStampMicroTZVector times) {
            times.setSafe(row, micros(column.getName(), value, schema));
        } else if (column instanceof DateDayVector days) {
            days.setSafe(row, value instanceof Date day ? (int) Math.floorDiv(day.getTime(), DAY_MS) : (Integer) value);
        } else if (column instanceof DecimalVector numbers) {
            numbers.setSafe(row, decimal(column.getName(), (BigDecimal) value, numbers.getScale()));
        } else if (column instanceof VarBinaryVector bytes) {
            bytes.setSafe(row, bytes(value));
        } else if (column instanceof Float4Vector numbers) {
            numbers.setSafe(row, (Float) value);
        } else if (column instanceof SmallIntVector numbers) {
            numbers.setSafe(row, (Short) value);
        } else if (column instanceof TinyIntVector numbers) {
            numbers.setSafe(row, (Byte) value);
        } else {
            putNested(column, row, value, schema);
        }
    }

    private static void putNested(FieldVector column, int row, Object value, Schema schema) {
        if (column instanceof StructVector struct) {
            struct.setIndexDefined(row);
            for (org.apache.kafka.connect.data.Field each : schema.fields()) {
                FieldVector child = struct.getChildrenFromFields().get(each.index());
                put(child, row, ((Struct) value).get(each), each.schema());
            }
        } else if (column instanceof MapVector map) {
            int at = map.startNewValue(row);
            StructVector pairs = (StructVector) map.getDataVector();
            for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) {
                pairs.setIndexDefined(at);
                put(pairs.getChildrenFromFields().get(0), at, each.getKey(), schema.keySchema());
                put(pairs.getChildrenFromFields().get(1), at, each.getValue(), schema.valueSchema());
                at++;
            }
            map.endValue(row, ((Map<?, ?>) value).size());
        } else if (column instanceof ListVector list) {
            int at = list.startNewValue(row);
            for (Object each : (List<?>) value) {
                put(list.getDataVector(), at++, each, schema.valueSchema());
            }
            list.endValue(row, ((List<?>) value).size());
        } else {
            throw new IllegalStateException("nothing is known of " + column.getClass());
        }
    }

    private static long micros(String name, Object value, Schema schema) {
        if (MICRO_TIMES.equals(schema.name())) {
            return (Long) value;
        }
        long ms = value instanceof Date time ? time.getTime() : (Long) value;
        try {
            return Math.multiplyExact(ms, MICROS);
        } catch (ArithmeticException far) {
            throw new DataException(
                "field " + name + " has a time that no timestamp holds: " + ms + " ms since 1970", far);
        }
    }

    private static BigDecimal decimal(String name, BigDecimal value, int scale) {
        BigDecimal scaled = value.setScale(scale); // a negative scale is that of a whole number
        if (scaled.precision() > DIGITS) {
            throw new DataException("field " + name + ": a Decimal has at most " + DIGITS + " digits, not "
                + scaled.precision());
        }
        return scaled;
    }

    private static byte[] bytes(Object value) {
        if (value instanceof byte[] array) {
            return array;
        }
        ByteBuffer buffer = ((ByteBuffer) value).duplicate();
        byte[] array = new byte[buffer.remaining()];
        buffer.get(array);
        return array;
    }

    /** Returns the text of a value without a schema: its own, or JSON. */
    private static String text(Object value) {
        if (value instanceof String text) {
            return text;
        }
        try {
            return Link.JSON.writeValueAsString(value);
        } catch (JsonProcessingException error) {
            throw new DataException("a value without a schema cannot be written as JSON", error);
        }
    }

    /** Bytes that are not copied once more when they are complete. */
    private static final class Bytes extends ByteArrayOutputStream {
        ByteBuffer whole() {
            return ByteBuffer.wrap(buf, 0, count);
        }
    }
}
