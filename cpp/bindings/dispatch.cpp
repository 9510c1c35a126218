#include "bindings/dispatch.hpp"

#include <array>
#include <mutex>

namespace isotone {

void fail(const std::string& message) { throw nanobind::value_error(message.c_str()); }

// ---- instruction sets ---------------------------------------------------------------------

namespace {

std::vector<const Kernels*> find_supported() {
    std::vector<const Kernels*> supported = {&baseline::kernels};
#if defined(__x86_64__)
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_avx2) supported.push_back(&avx2::kernels);
    if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        supported.push_back(&avx512::kernels);
#endif
    return supported;
}

const std::vector<const Kernels*>& supported_kernels() {
    static const std::vector<const Kernels*> supported = find_supported();
    return supported;
}

}  // namespace

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const Kernels* kernels : supported_kernels()) names.emplace_back(kernels->isa);
    return names;
}

const Kernels& choose_kernels(const std::string& isa) {
    if (isa.empty()) return *supported_kernels().back();
    std::string names;
    for (const Kernels* kernels : supported_kernels()) {
        if (isa == kernels->isa) return *kernels;
        names += (names.empty() ? "" : ", ") + std::string(kernels->isa);
    }
    fail("`isa=\"" + isa + "\"` does not run here; choose one of " + names +
         ", or leave it out for the fastest.");
}

// ---- networks -----------------------------------------------------------------------------

SortingNetwork find_sorting_network(int n) {
    static std::array<std::once_flag, max_group_size + 1> flags;
    static std::array<std::vector<Comparator>, max_group_size + 1> networks;
    std::vector<Comparator>& network = networks[n];
    std::call_once(flags[n], [&] {
        baseline::build_sorting_network(n, [&](int low, int high) {
            network.push_back({static_cast<std::uint16_t>(low), static_cast<std::uint16_t>(high)});
        });
    });
    return {network.data(), network.data() + network.size()};
}

}  // namespace isotone
