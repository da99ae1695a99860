// Has devices copy the weights they get, instead of using them in the file's mapping.
//
// llama.cpp gives a device that can use mapped memory one range of the file, from its first tensor there to its last, and
// Metal keeps all of that in memory (llama-model.cpp, `get_mapping_range`; ggml-metal-device.m, residency sets). Where the
// experts between them stay on the disk, the range would be the whole file. llama.cpp has no switch for that; it copies
// where a device says that it cannot use mapped memory.

#include "ggml-backend-impl.h"

#include <mutex>
#include <utility>
#include <vector>

namespace {

using properties = void (*)(ggml_backend_dev_t, ggml_backend_dev_props *);

std::mutex changing;
std::vector<std::pair<ggml_backend_dev_t, properties>> changed;

void without_mapping(ggml_backend_dev_t device, ggml_backend_dev_props * props) {
    for (const auto & [each, real] : changed) {
        if (each == device) {
            real(device, props);
        }
    }
    props->caps.buffer_from_host_ptr = false;
}

} // namespace

extern "C" {

// For all devices of a type, as of ggml's `enum ggml_backend_dev_type`. Nothing may be loaded meanwhile.
void tierbar_copy_weights(int type) {
    const std::lock_guard<std::mutex> lock(changing);
    for (size_t number = 0; number < ggml_backend_dev_count(); number++) {
        const auto device = ggml_backend_dev_get(number);
        if (ggml_backend_dev_type(device) == type && device->iface.get_props != without_mapping) {
            changed.emplace_back(device, device->iface.get_props);
            device->iface.get_props = without_mapping;
        }
    }
}

// All devices are as they were. Nothing may be loaded meanwhile.
void tierbar_map_weights() {
    const std::lock_guard<std::mutex> lock(changing);
    for (const auto & [device, real] : changed) {
        device->iface.get_props = real;
    }
    changed.clear();
}
}
