import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.security.Permission;
import java.util.Arrays;

/** Runs many of the offline tools of Cassandra in one process: a line of input is CLASS, a file for the output, and arguments, with tabs between; a
 * line of output is how it ended. */
public class Tools {
    /** Thrown where a tool would end the process. */
    static class Ended extends SecurityException {
        final int code;

        Ended(int code) {
            super("ended with " + code);
            this.code = code;
        }
    }

    static class NoExit extends SecurityManager {
        @Override
        public void checkExit(int code) {
            throw new Ended(code);
        }

        @Override
        public void checkPermission(Permission permission) {}

        @Override
        public void checkPermission(Permission permission, Object context) {}
    }

    public static void main(String[] none) throws Exception {
        PrintStream out = System.out;
        System.setSecurityManager(new NoExit());
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split("\t");
            int code = 0;
            try (PrintStream file = new PrintStream(new FileOutputStream(words[1]), false, "UTF-8")) {
                System.setOut(file);
                Class<?> tool = Class.forName("org.apache.cassandra.tools." + words[0]);
                tool.getMethod("main", String[].class).invoke(null, (Object) Arrays.copyOfRange(words, 2, words.length));
            } catch (InvocationTargetException e) {
                code = 1;
                if (e.getCause() instanceof Ended)
                    code = ((Ended) e.getCause()).code;
                else
                    e.getCause().printStackTrace();
            }
            out.println(code);
            out.flush();
        }
        System.setSecurityManager(null);
        System.exit(0);
    }
}
