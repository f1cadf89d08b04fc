// Reads the kernel table (see pytest_tfdevice/kernels/table.py) that Python hands over as text.
#ifndef TFDEVICE_TABLE_H_
#define TFDEVICE_TABLE_H_

#include <algorithm>

#include "common.h"
#include "tensorflow/core/framework/kernel_def.pb.h"

namespace tensorflow {
namespace tfdevice {

struct TableEntry {
  KernelDef kernel;        // device type as in the table, "GPU" or "DEFAULT"
  bool cuda_only = false;  // false where the CPU-only wheel has it too: its code runs on the host
  // False where the table names a dtype that this TensorFlow doesn't know (the table is of another
  // patch release).
  bool known_types = true;
};

inline std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

// The table has the names of TensorFlow's Python API, C++ calls three dtypes otherwise.
inline std::string CppTypeName(const std::string& name) {
  const size_t end = name.size() > 4 && name.compare(name.size() - 4, 4, "_ref") == 0
                         ? name.size() - 4
                         : name.size();
  const std::string base = name.substr(0, end), suffix = name.substr(end);
  if (base == "float32") return "float" + suffix;
  if (base == "float64") return "double" + suffix;
  if (base == "float16") return "half" + suffix;
  return name;
}

// Adds "float32", "int:-1", "bool:true" or "str:NHWC" to a constraint; false for an unknown dtype.
inline bool AddAllowedValue(const std::string& text, AttrValue::ListValue* values) {
  const size_t colon = text.find(':');
  const std::string kind = colon == std::string::npos ? "" : text.substr(0, colon);
  const std::string value = colon == std::string::npos ? text : text.substr(colon + 1);
  if (kind == "int") {
    values->add_i(std::stoll(value));
  } else if (kind == "bool") {
    values->add_b(value == "true");
  } else if (kind == "str") {
    values->add_s(value);
  } else {
    DataType type = DT_INVALID;
    if (!DataTypeFromString(CppTypeName(text), &type)) return false;
    values->add_type(type);
  }
  return true;
}

// One line; false where it is not one of a table.
inline bool ParseLine(const std::string& line, TableEntry* entry) {
  const std::vector<std::string> columns = Split(line, '\t');
  if (columns.size() != 7) return false;
  KernelDef& kernel = entry->kernel;
  kernel.set_device_type(columns[0]);
  kernel.set_op(columns[1]);
  kernel.set_label(columns[2]);
  kernel.set_priority(atoi(columns[3].c_str()));
  for (const std::string& text : Split(columns[4], ';')) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) return false;
    KernelDef::AttrConstraint* constraint = kernel.add_constraint();
    constraint->set_name(text.substr(0, equals));
    auto* values = constraint->mutable_allowed_values()->mutable_list();
    for (const std::string& value : Split(text.substr(equals + 1), ',')) {
      entry->known_types = AddAllowedValue(value, values) && entry->known_types;
    }
  }
  for (const std::string& argument : Split(columns[5], ',')) kernel.add_host_memory_arg(argument);
  entry->cuda_only = columns[6] == "cuda";
  return entry->cuda_only || columns[6] == "host";
}

// The whole table; an error message, empty where all is well.
inline std::string ParseTable(const std::string& text, std::vector<TableEntry>* entries) {
  for (const std::string& line : Split(text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    entries->emplace_back();
    if (!ParseLine(line, &entries->back())) return "not a line of a kernel table: " + line;
  }
  return entries->empty() ? "the kernel table is empty" : "";
}

// What identifies a kernel apart from its device type and priority, whatever order its constraints
// and arguments were registered in.
inline std::string KeyOf(const KernelDef& kernel) {
  std::map<std::string, std::string> constraints;
  for (const auto& constraint : kernel.constraint()) {
    const auto& list = constraint.allowed_values().list();
    std::set<std::string> values(list.s().begin(), list.s().end());
    for (const auto type : list.type()) values.insert(std::to_string(type));
    for (const auto number : list.i()) values.insert("i" + std::to_string(number));
    for (const auto flag : list.b()) values.insert(flag ? "true" : "false");
    for (const auto& value : values) constraints[constraint.name()] += value + ",";
  }
  std::string key = kernel.op() + "|" + kernel.label();
  for (const auto& constraint : constraints) {
    key += "|" + constraint.first + "=" + constraint.second;
  }
  key += "||";
  const std::set<std::string> host(kernel.host_memory_arg().begin(),
                                   kernel.host_memory_arg().end());
  for (const auto& argument : host) key += argument + ",";
  return key;
}

}  // namespace tfdevice
}  // namespace tensorflow
#endif  // TFDEVICE_TABLE_H_
