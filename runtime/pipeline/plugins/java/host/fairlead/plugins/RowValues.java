package fairlead.plugins;

import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.MapVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;

/**
 * Reads rows of a table of Arrow as values of Connect. Dates, times and timestamps are numbers in the table, in the
 * unit that Connect's own types have.
 */
record RowValues(Schema schema, String column) {
    private static final long DAY_MS = 86_400_000;

    /** Returns the value of a row: that of the column, or if none is named a struct of the columns of its fields. */
    Object read(VectorSchemaRoot table, int row) {
        if (column != null) {
            return value(table.getVector(column), row, schema);
        }
        Struct struct = new Struct(schema);
        for (Field each : schema.fields()) {
            struct.put(each, value(table.getVector(each.name()), row, each.schema()));
        }
        return struct;
    }

    /** Returns whether a row has no value in any column. */
    boolean isNull(VectorSchemaRoot table, int row) {
        return column != null
            ? table.getVector(column).isNull(row)
            : schema.fields().stream().allMatch(each -> table.getVector(each.name()).isNull(row));
    }

    private static Object value(FieldVector column, int row, Schema schema) {
        if (column.isNull(row)) {
            return null;
        }
        switch (schema.type()) {
            case STRUCT:
                Struct struct = new Struct(schema);
                for (Field each : schema.fields()) {
                    struct.put(each, value(((StructVector) column).getChild(each.name()), row, each.schema()));
                }
                return struct;
            case ARRAY:
                ListVector list = (ListVector) column;
                List<Object> items = new ArrayList<>();
                for (int at = list.getElementStartIndex(row); at < list.getElementEndIndex(row); at++) {
                    items.add(value(list.getDataVector(), at, schema.valueSchema()));
                }
                return items;
            case MAP:
                MapVector map = (MapVector) column;
                List<FieldVector> pair = ((StructVector) map.getDataVector()).getChildrenFromFields();
                Map<Object, Object> entries = new HashMap<>();
                for (int at = map.getElementStartIndex(row); at < map.getElementEndIndex(row); at++) {
                    Object key = value(pair.get(0), at, schema.keySchema());
                    entries.put(key, value(pair.get(1), at, schema.valueSchema()));
                }
                return entries;
            default:
                return plain(column.getObject(row), schema);
        }
    }

    private static Object plain(Object value, Schema schema) {
        if (schema.type() == Schema.Type.STRING) {
            return value.toString();
        }
        String name = schema.name() == null ? "" : schema.name();
        return switch (name) {
            case org.apache.kafka.connect.data.Date.LOGICAL_NAME -> new Date((Integer) value * DAY_MS);
            case Time.LOGICAL_NAME -> new Date((Integer) value);
            case Timestamp.LOGICAL_NAME -> new Date((Long) value);
            default -> value;
        };
    }
}
