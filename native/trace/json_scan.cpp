#include "trace/json_scan.h"

#include <string>

namespace movie {

Scan scan_json(std::string_view data, const ScanLimits& limits) {
    Scan scan;
    const std::size_t most_containers = (std::size_t{1} << 20) + data.size() / limits.bytes_per_container;
    std::string open;  // the brackets that wait for their partner
    auto fault = [&](std::size_t at, std::string problem) {
        scan.offset = at;
        scan.problem = std::move(problem);
        return scan;
    };
    bool quoted = false;
    for (std::size_t i = 0; i < data.size(); ++i) {
        const char c = data[i];
        if (quoted) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                quoted = false;
            continue;
        }
        switch (c) {
            case '"':
                quoted = true;
                break;
            case '[':
            case '{':
                if (open.size() == limits.depth)
                    return fault(i, "containers inside each other, deeper than " + std::to_string(limits.depth));
                if (++scan.containers > most_containers) return fault(i, "more lists and dicts than a snapshot has");
                open.push_back(c);
                if (open.size() > scan.depth) scan.depth = open.size();
                break;
            case ']':
            case '}':
                if (open.empty() || open.back() != (c == ']' ? '[' : '{'))
                    return fault(i, "a bracket that closes nothing");
                open.pop_back();
                break;
            case ',':
                if (++scan.items > limits.items) return fault(i, "more values than " + std::to_string(limits.items));
                break;
            default:
                break;
        }
    }
    if (quoted || !open.empty()) return fault(data.size(), "the text ends early");
    return scan;
}

}  // namespace movie
