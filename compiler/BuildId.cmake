# Writes the digest of the compiler's archives to a source file:  cmake -DOUTPUT=FILE -DARCHIVES=A,B,... -P BuildId.cmake
string(REPLACE "," ";" archives "${ARCHIVES}")
set(digests "")
foreach(archive ${archives})
  file(SHA256 ${archive} digest)
  string(APPEND digests ${digest})
endforeach()
string(SHA256 digest "${digests}")
file(WRITE ${OUTPUT} "#include \"compiler/BuildId.h\"\n\nconst char *const qd::buildId = \"${digest}\";\n")
