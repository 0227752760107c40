// C++: containers, virtual functions, exceptions that pass objects with destructors.
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct shape {
    virtual ~shape() = default;
    virtual int area() const = 0;
};
struct square : shape {
    explicit square(int side) : side_(side) {}
    int area() const override { return side_ * side_; }
    int side_;
};
long destroyed;
struct guard {
    explicit guard(int number) : of(new int(number)) {}
    ~guard() {
        destroyed += *of;
        delete of;
    }
    int* of;
};

[[gnu::noinline]] int deeper(int level, const std::vector<std::unique_ptr<shape>>& all) {
    const guard here(level);
    if (level >= 7) throw std::runtime_error("the end of it: " + std::to_string(level));
    return deeper(level + 1, all) + all[static_cast<std::size_t>(level)]->area();
}

}  // namespace

int main() {
    std::vector<std::unique_ptr<shape>> all;
    for (int i = 0; i < 10; ++i) all.push_back(std::make_unique<square>(i));
    std::map<std::string, int> count;
    for (int i = 0; i < 40; ++i) {
        try {
            count[deeper(i % 10, all) > 5 ? "much" : "little"] += i;
        } catch (const std::exception& error) {
            ++count[error.what()];
        }
    }
    for (const auto& [name, number] : count) std::printf("%s %d\n", name.c_str(), number);
    std::printf("%ld\n", destroyed);
    return 0;
}
