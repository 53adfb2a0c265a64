# Thin front for CMake, for people who type make.
.PHONY: build test fuzz gpu clean format
build:
	cmake --preset release -DASSAY_TESTS=OFF && cmake --build --preset release
test:
	./test
fuzz:
	tools/fuzz.sh
gpu:
	tools/gpu.sh
format:
	tools/format.sh --fix
clean:
	rm -rf build build-*
