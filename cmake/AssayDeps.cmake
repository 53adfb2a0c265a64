# Everything comes from the distribution's packages; ./test and ./demo install them.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_library(SECCOMP_LIBRARY seccomp REQUIRED)
find_library(YAML_CPP_LIBRARY yaml-cpp REQUIRED)
