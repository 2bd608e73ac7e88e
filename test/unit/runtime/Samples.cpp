#include "Samples.h"

namespace qd::rt {

std::string sampleInterface(unsigned subgroupSize) {
  std::string json = R"({"version":1,"kernels":[
    {"name":"scale","block":[32,1,1],"subgroup_size":LANES,"shared_bytes":0,"params_bytes":8,"features":[],"args":[
      {"name":"x","kind":"buffer","type":"f32","access":"readonly","size":false,"binding":0},
      {"name":"y","kind":"buffer","type":"f32","access":"writeonly","size":false,"binding":1},
      {"name":"a","kind":"scalar","type":"f32","offset":0},
      {"name":"n","kind":"scalar","type":"i32","offset":4}]},
    {"name":"lanes","block":[8,4,1],"subgroup_size":LANES,"shared_bytes":0,"params_bytes":0,"features":[],"args":[
      {"name":"y","kind":"buffer","type":"i32","access":"writeonly","size":false,"binding":0}]},
    {"name":"big","block":[256,1,1],"subgroup_size":LANES,"shared_bytes":0,"params_bytes":0,"features":[],"args":[
      {"name":"y","kind":"buffer","type":"i32","access":"writeonly","size":false,"binding":0}]},
    {"name":"wide","block":[1,1,1],"subgroup_size":LANES,"shared_bytes":0,"params_bytes":24,
     "features":["int64","float64"],"args":[
      {"name":"x","kind":"buffer","type":"f64","access":"readonly","size":false,"binding":0},
      {"name":"y","kind":"buffer","type":"f64","access":"readwrite","size":true,"binding":1,"size_offset":16},
      {"name":"s","kind":"scalar","type":"f64","offset":0},
      {"name":"k","kind":"scalar","type":"i64","offset":8}]}]})";
  for (size_t at; (at = json.find("LANES")) != std::string::npos;)
    json.replace(at, 5, std::to_string(subgroupSize));
  return json;
}

std::vector<uint8_t> sampleEntry(ImageKind kind, std::string_view triple, const std::string &arch,
                                 unsigned subgroupSize, const std::vector<uint8_t> &image) {
  return formatEntry(kind,
                     {{"triple", std::string(triple)},
                      {"arch", arch},
                      {"qdb.version", std::string(bundleVersion)},
                      {"subgroup_size", std::to_string(subgroupSize)},
                      {"qdb.interface", sampleInterface(subgroupSize)}},
                     image);
}

} // namespace qd::rt
